"""SHA-256 sums that come with the data are verified before anything is read."""

from __future__ import annotations

import hashlib
import zipfile

import pytest
from prepare.native_files import IDS, folder, write_npy

from smokegeo.errors import InputError
from smokegeo.prepare.run import prepare
from smokegeo.prepare.sums import verify_sums


def sums_of(root):
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return "".join(
        f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(root)}\n" for p in files
    )


@pytest.fixture
def src(tmp_path):
    return write_npy(folder(tmp_path, "src"))


@pytest.mark.parametrize("name", ["checksums.sha256", "SHA256SUMS", "mine.sha256"])
def test_sums_are_verified_and_counted(name, src, tmp_path):
    (src / name).write_text(sums_of(src))
    assert prepare("hss", src, tmp_path / "dst").facts["verified_files"] == 2 * len(IDS)


def test_all_changed_and_missing_files_are_named(src, tmp_path):
    (src / "SHA256SUMS").write_text(sums_of(src))
    (src / "images" / "a_01.npy").write_bytes(b"changed")
    (src / "masks" / "b_01.png").unlink()
    with pytest.raises(InputError, match=r"2 of 6 files .*a_01\.npy, masks/b_01\.png \(missing\)"):
        prepare("hss", src, tmp_path / "dst")
    assert not (tmp_path / "dst").exists()


def test_the_sum_beside_an_archive_is_verified(src, tmp_path):
    archive = tmp_path / "data.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in src.rglob("*"):
            file.write(path, path.relative_to(tmp_path))
    good = hashlib.sha256(archive.read_bytes()).hexdigest()
    (tmp_path / "data.zip.sha256").write_text(good)
    (tmp_path / "other.zip.sha256").write_text("0" * 64)
    assert prepare("hss", archive, tmp_path / "dst").facts["verified_files"] == 1
    (tmp_path / "data.zip.sha256").write_text("0" * 64 + "  data.zip\n")
    with pytest.raises(InputError, match=r"data\.zip"):
        prepare("hss", archive, tmp_path / "other")


def test_sums_of_files_elsewhere_are_refused(tmp_path):
    (tmp_path / "SHA256SUMS").write_text("0" * 64 + "  ../../etc/passwd\n")
    with pytest.raises(InputError, match=r"lies outside of it\. Take its line out"):
        verify_sums(tmp_path)
