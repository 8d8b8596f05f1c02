"""Fetch the paper's dataset from Hugging Face at the revision this code was written against."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smokegeo.errors import InputError, SmokegeoError, deepest_cause
from smokegeo.files import need_space, sha256
from smokegeo.prepare.faults import named
from smokegeo.progress import track

log = logging.getLogger(__name__)

REPO = "LujianYao/HSSDataset"
#: Only the short form is known; the hub wants the whole hash, so it is looked up.
REVISION = "a1accf5"
_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Downloaded:
    """What was fetched: the whole hash of the revision, and how many files were verified."""

    revision: str
    verified_files: int


def download(folder: Path, hint: str) -> Downloaded:
    """Fetch the dataset into `folder`; `hint` says what to do if it cannot be had."""
    import huggingface_hub

    hub = huggingface_hub.HfApi()
    try:
        # Asked once without retries: the calls below try for half a minute before they give up.
        hub.repo_info(REPO, repo_type="dataset", timeout=_TIMEOUT_S)
        revision = _full_revision(hub)
        entries = list(
            hub.list_repo_tree(REPO, recursive=True, revision=revision, repo_type="dataset")
        )
        need_space(folder, sum(int(getattr(entry, "size", 0) or 0) for entry in entries))
        folder.mkdir(parents=True, exist_ok=True)
        log.info("downloading %s at %s", REPO, revision)
        huggingface_hub.snapshot_download(
            REPO, repo_type="dataset", revision=revision, local_dir=folder
        )
    except SmokegeoError:
        raise
    except Exception as error:
        if not isinstance(error, OSError) and type(error).__module__.split(".")[0] == "builtins":
            raise  # a mistake of ours, not the network's
        raise InputError(f"{REPO} cannot be downloaded ({deepest_cause(error)}). {hint}") from error
    return Downloaded(revision, _verify(folder, entries))


def _full_revision(hub: Any) -> str:
    commits = [c.commit_id for c in hub.list_repo_commits(REPO, repo_type="dataset")]
    found = [commit for commit in commits if commit.startswith(REVISION)]
    if len(found) != 1:
        raise InputError(
            f"{REPO} has no revision {REVISION} any more; its makers may have replaced the data. "
            "Download it by hand, look at it, and prepare that folder."
        )
    return str(found[0])


def _verify(folder: Path, entries: list[Any]) -> int:
    """Compare large files with the SHA-256 the hub states; others are covered by git itself."""
    large = [entry for entry in entries if getattr(entry, "lfs", None) is not None]
    wrong = [
        entry.path
        for entry in track(large, "verifying", len(large))
        if not (folder / entry.path).is_file()
        or sha256(folder / entry.path) != entry.lfs.sha256.lower()
    ]
    if wrong:
        raise InputError(
            f"{folder}: {named(wrong)} differ from the hub's SHA-256. Remove them, and "
            "download again."
        )
    return len(large)
