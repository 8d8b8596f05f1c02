"""The paper's dataset from the hub, against a hub of our own; and the real one out of reach."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from types import SimpleNamespace

import huggingface_hub
import pytest
from prepare.native_files import IDS, folder, write_npy

from smokegeo.errors import InputError
from smokegeo.prepare.download import REPO, REVISION
from smokegeo.prepare.run import Options, prepare

FULL = REVISION + "0" * 33


class FakeHub:
    """A hub that serves a folder, with the SHA-256 of every file but those it lies about."""

    def __init__(self, content, commits=("f" * 40, FULL), lies=()):
        self.content, self.commits, self.lies = content, commits, lies
        self.served = []

    def __call__(self):
        return self

    def repo_info(self, repo, *, repo_type, timeout):
        assert (repo, repo_type) == (REPO, "dataset")
        assert timeout < 30

    def list_repo_commits(self, repo, *, repo_type):
        return [SimpleNamespace(commit_id=commit) for commit in self.commits]

    def list_repo_tree(self, repo, *, recursive, revision, repo_type):
        assert revision == FULL
        yield SimpleNamespace(path="images", tree_id="folder")
        for path in sorted(p for p in self.content.rglob("*") if p.is_file()):
            digest = hashlib.sha256(b"" if path.name in self.lies else path.read_bytes())
            yield SimpleNamespace(
                path=path.relative_to(self.content).as_posix(),
                size=path.stat().st_size,
                lfs=SimpleNamespace(sha256=digest.hexdigest()),
            )

    def snapshot_download(self, repo, *, repo_type, revision, local_dir):
        assert repo_type == "dataset"
        self.served.append(revision)
        shutil.copytree(self.content, local_dir, dirs_exist_ok=True)
        (folder(local_dir, ".cache", "huggingface") / "x.npy").write_bytes(b"not data")


@pytest.fixture
def serve(monkeypatch, tmp_path):
    def start(**kwargs):
        hub = FakeHub(write_npy(folder(tmp_path, "hub")), **kwargs)
        monkeypatch.setattr(huggingface_hub, "HfApi", hub)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", hub.snapshot_download)
        return hub

    return start


def fetch(tmp_path):
    return prepare("hss", tmp_path / "native", tmp_path / "dst", Options(download=True))


def test_the_pinned_revision_is_resolved_fetched_and_verified(serve, tmp_path):
    hub = serve()
    done = fetch(tmp_path)
    assert hub.served == [FULL]
    assert done.facts["revision"] == FULL
    assert done.facts["hub_verified_files"] == 2 * len(IDS)
    assert done.facts["samples"] == len(IDS)


def test_another_revision_is_not_taken_instead(serve, tmp_path):
    hub = serve(commits=("f" * 40,))
    with pytest.raises(InputError, match=f"no revision {REVISION} any more"):
        fetch(tmp_path)
    assert hub.served == []
    assert not (tmp_path / "native").exists()


def test_a_file_that_is_not_what_the_hub_says_is_named(serve, tmp_path):
    serve(lies=("a_02.npy",))
    with pytest.raises(InputError, match=r"images/a_02.npy differ from the hub's SHA-256"):
        fetch(tmp_path)
    assert not (tmp_path / "dst").exists()


@pytest.mark.parametrize(
    "variables",
    [{"HF_HUB_OFFLINE": "1"}, {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9"}],
)
def test_without_network_one_line_says_what_to_do_and_soon(variables, tmp_path):
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "smokegeo", "prepare", "hss", "native", "dst", "--download"],
        cwd=tmp_path,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert time.monotonic() - started < 15
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: {REPO} cannot be downloaded (")
    assert "`smokegeo simulate hss --out dst`" in line
    assert list(tmp_path.iterdir()) == []
