"""Archives: honest ones are unpacked, attacks leave nothing behind."""

from __future__ import annotations

import gzip
import io
import shutil
import stat
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest
from prepare.native_files import IDS, folder, write_npy

from smokegeo.errors import InputError, OutputError
from smokegeo.prepare.archive import Limits, extract, unpacked
from smokegeo.prepare.run import prepare

SMALL = Limits(total_bytes=50_000, members=20, ratio=10, free_bytes=10_000)


def tar_with(path, *members):
    """Write a tar of (name, content or a function that shapes the TarInfo)."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if callable(content):
                content(info)
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


def zip_with(path, *members):
    """Write a zip of (name or ZipInfo, content)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content, zipfile.ZIP_DEFLATED)
    return path


def link(target, kind=tarfile.SYMTYPE):
    def shape(info):
        info.type, info.linkname = kind, target

    return shape


def device(info):
    info.type, info.devmajor, info.devminor = tarfile.CHRTYPE, 1, 3


def zip_link(path):
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return zip_with(path, (info, "/etc/passwd"))


def zip_that_lies(path):
    """Claim in both headers that a member of 40 kB has 10 bytes."""
    zip_with(path, ("a.npy", b"\0" * 40_000))
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = content.index(signature) + offset
        content[at : at + 4] = struct.pack("<I", 10)
    path.write_bytes(content)
    return path


def as_folder(info):
    info.type = tarfile.DIRTYPE


#: Name -> (archive suffix, how it is made, what the refusal says).
ATTACKS = {
    "tar up": (".tar.gz", lambda p: tar_with(p, ("../evil", b"x")), "would leave the folder"),
    "tar up inside": (".tgz", lambda p: tar_with(p, ("a/../../evil", b"x")), "would leave"),
    "tar absolute": (".tar.gz", lambda p: tar_with(p, ("/tmp/evil", b"x")), "would leave"),
    "tar symlink": (".tar.gz", lambda p: tar_with(p, ("a", link("/etc"))), "link or device"),
    "tar symlink, then through it": (
        ".tar.gz",
        lambda p: tar_with(p, ("a", link("..")), ("a/evil", b"x")),
        "link or device",
    ),
    "tar hard link": (
        ".tar.gz",
        lambda p: tar_with(p, ("a", link("/etc/passwd", tarfile.LNKTYPE))),
        "link or device",
    ),
    "tar device": (".tar.gz", lambda p: tar_with(p, ("null", device)), "link or device"),
    "tar bomb": (".tar.gz", lambda p: tar_with(p, ("a", bytes(40_000))), "unpacks to more than"),
    "tar of too many": (
        ".tar.gz",
        lambda p: tar_with(p, *((f"{n}", b"") for n in range(21))),
        "more than 20 members",
    ),
    "tar of too many folders": (
        ".tar.gz",
        lambda p: tar_with(p, *((f"{n}", as_folder) for n in range(21))),
        "more than 20 members",
    ),
    "tar twice": (".tar.gz", lambda p: tar_with(p, ("a", b"1"), ("a", b"2")), "'a' twice"),
    "tar file as folder": (".tar.gz", lambda p: tar_with(p, ("a", b"1"), ("a/b", b"2")), "twice"),
    "zip up": (".zip", lambda p: zip_with(p, ("../evil", b"x")), "would leave"),
    "zip backslash": (".zip", lambda p: zip_with(p, ("a\\..\\..\\evil", b"x")), "would leave"),
    "zip absolute": (".zip", lambda p: zip_with(p, ("/tmp/evil", b"x")), "would leave"),
    "zip drive": (".zip", lambda p: zip_with(p, ("C:/evil", b"x")), "would leave"),
    "zip symlink": (".zip", zip_link, "link or device"),
    "zip bomb": (".zip", lambda p: zip_with(p, ("a", bytes(40_000))), "unpacks to more than"),
    "zip bomb in many files": (
        ".zip",
        lambda p: zip_with(p, *((f"{n}", bytes(4_000)) for n in range(10))),
        "unpacks to",
    ),
    "zip that lies about its size": (".zip", zip_that_lies, "damaged"),
    "zip of too many": (
        ".zip",
        lambda p: zip_with(p, *((f"{n}", b"") for n in range(21))),
        "more than 20 members",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_refused_and_write_nothing_outside(attack, tmp_path):
    suffix, make, message = ATTACKS[attack]
    archive = make(tmp_path / f"evil{suffix}")
    target = folder(tmp_path, "inner", "target")
    with pytest.raises(InputError, match=message):
        extract(archive, target, SMALL)
    outside = [p for p in tmp_path.rglob("*") if target not in (p, *p.parents)]
    assert sorted(p.name for p in outside) == [archive.name, "inner"]
    assert sum(p.stat().st_size for p in target.rglob("*") if p.is_file()) <= SMALL.free_bytes


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tgz"])
@pytest.mark.parametrize("attack", ["truncated", "not an archive", "empty"])
def test_damaged_archives_are_refused_in_one_line(suffix, attack, tmp_path):
    path = tmp_path / f"a{suffix}"
    members = [(f"{n}.bin", bytes(range(256)) * 50) for n in range(3)]
    if suffix == ".zip":
        zip_with(path, *members)
    else:
        tar_with(path, *members)
        if suffix == ".tar":
            path.write_bytes(gzip.decompress(path.read_bytes()))
    whole = path.read_bytes()
    path.write_bytes({"truncated": whole[: len(whole) // 2], "empty": b""}.get(attack, b"x" * 999))
    with pytest.raises(InputError, match="is damaged"):
        extract(path, folder(tmp_path, "out"))


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tgz"])
def test_an_archive_is_prepared_like_its_folder_and_cleaned_up(suffix, tmp_path):
    source = write_npy(folder(tmp_path, "plain", "HSSDataset"))
    archive = tmp_path / f"data{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as file:
            for path in source.rglob("*"):
                file.write(path, path.relative_to(source.parent))
            file.writestr("__MACOSX/._a_01.npy", b"resource fork")
    else:
        with tarfile.open(archive, "w:gz" if "gz" in suffix else "w") as tar:
            tar.add(source, source.name)
    done = prepare("hss", archive, tmp_path / "out" / "dst")
    assert done.facts["samples"] == len(IDS)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["dst"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [archive.name, "out", "plain"]
    )


@pytest.mark.parametrize("top", ["HSSDataset", "data", ""])
def test_an_archive_of_both_kinds_gives_the_kind_asked_for(top, tmp_path):
    plain = tmp_path / "plain"
    write_npy(folder(plain, top, "HSS"))
    folder(plain, top, "MSS", "rgb").joinpath("x.png").write_bytes(b"of the other kind")
    archive = shutil.make_archive(str(tmp_path / "data"), "zip", plain)
    done = prepare("hss", Path(archive), tmp_path / "dst")
    assert done.facts["samples"] == len(IDS)


def test_a_folder_of_archives_is_unpacked_each_into_its_name(tmp_path):
    plain = write_npy(folder(tmp_path, "plain"))
    src = folder(tmp_path, "src")
    for part in ("images", "masks"):
        with zipfile.ZipFile(src / f"{part}.zip", "w") as file:
            for path in (plain / part).iterdir():
                file.write(path, path.name)
    (src / "README.md").write_text("hello")
    assert prepare("hss", src, tmp_path / "dst").facts["samples"] == len(IDS)


def test_a_fault_inside_an_archive_leaves_no_temporary_folder(tmp_path):
    archive = zip_with(tmp_path / "data.zip", ("images/x.npy", b"no array"))
    with pytest.raises(InputError, match="no mask: x"):
        prepare("hss", archive, tmp_path / "dst")
    assert [path.name for path in tmp_path.iterdir()] == ["data.zip"]


def test_an_archive_with_a_password_is_to_be_unpacked_by_its_owner(tmp_path):
    archive = zip_with(tmp_path / "data.zip", ("images/x.npy", b"secret"))
    content = bytearray(archive.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1
    archive.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be unpacked .*password.*\. Unpack it yourself"):
        extract(archive, folder(tmp_path, "out"))


def test_a_place_where_nothing_can_be_unpacked_is_told_with_a_remedy(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(OutputError, match=r"\(Permission denied\)\. Choose another folder"):
        unpacked([], tmp_path / "dst").__enter__()


def test_a_gzip_with_a_wrong_checksum_is_refused(tmp_path):
    archive = tar_with(tmp_path / "data.tar.gz", ("images/x.npy", b"content"))
    content = bytearray(archive.read_bytes())
    content[-8] ^= 1
    archive.write_bytes(content)
    with pytest.raises(InputError, match="is damaged"):
        extract(archive, folder(tmp_path, "out"))


def test_a_damaged_header_inside_is_not_taken_for_the_end(tmp_path):
    archive = tar_with(tmp_path / "data.tar.gz", *((f"{n}", b"content") for n in range(3)))
    content = bytearray(gzip.decompress(archive.read_bytes()))
    content[1024 + 150] ^= 1  # in the checksum of the second header
    (tmp_path / "data.tar").write_bytes(content)
    with pytest.raises(InputError, match="a header inside is damaged"):
        extract(tmp_path / "data.tar", folder(tmp_path, "out"))


def test_an_empty_mask_may_compress_a_thousandfold(tmp_path):
    archive = zip_with(tmp_path / "data.zip", ("mask.npy", bytes(1_000_000)))
    assert extract(archive, folder(tmp_path, "out")) == 1_000_000
