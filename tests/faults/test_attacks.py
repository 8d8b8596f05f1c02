"""Files made by a stranger: none may lead to another file, and none of its bytes into an output."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import rasterio
from faults.judging import assert_done, assert_refused, contents, polygons
from faults.scenes import SIZE, plume, vrt_to, write_scene, write_text

SECRET = b"root:x:0:0:TOPSECRET" * 2000


def pam(inner: str) -> str:
    return f"<PAMDataset>{inner}</PAMDataset>"


def overviews(file: Path) -> str:
    return pam(f'<Metadata domain="OVERVIEWS"><MDI key="OVERVIEW_FILE">{file}</MDI></Metadata>')


def vrt_as_scene(folder: Path, secret: Path) -> None:
    write_text(folder / "scene.tif", vrt_to(secret, bands=4))


def vrt_beside(suffix: str) -> Callable[[Path, Path], None]:
    def make(folder: Path, secret: Path) -> None:
        write_scene(folder / "scene.tif")
        write_text(folder / f"scene.tif{suffix}", vrt_to(secret, (SIZE[0] // 2, SIZE[1] // 2), 4))

    return make


def mask_as_vrt(folder: Path, secret: Path) -> None:
    """A mask that says which bytes of a file are 0: its pixels would be missing in the result."""
    write_scene(folder / "scene.tif")
    secret.write_bytes(SECRET.replace(b"x", b"\0"))
    write_text(folder / "scene.tif.msk", vrt_to(secret, SIZE, 1))


def overviews_in_aux(folder: Path, secret: Path) -> None:
    write_scene(folder / "scene.tif")
    write_text(folder / "o.vrt", vrt_to(secret, (SIZE[0] // 2, SIZE[1] // 2), 4))
    write_text(folder / "scene.tif.aux.xml", overviews(folder / "o.vrt"))


def overviews_inline(folder: Path, secret: Path) -> None:
    write_scene(folder / "scene.tif")
    text = vrt_to(secret, (SIZE[0] // 2, SIZE[1] // 2), 4).replace("<", "&lt;")
    write_text(folder / "scene.tif.aux.xml", overviews(Path(text)))


def overviews_of_mask(folder: Path, secret: Path) -> None:
    """Two steps away: the mask is a good TIFF, and its own overviews are not."""
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False):
        write_scene(folder / "scene.tif", mask=plume())
    write_text(folder / "scene.tif.msk.ovr", vrt_to(secret, (SIZE[0] // 2, SIZE[1] // 2), 1))


def linked_overviews(folder: Path, secret: Path) -> None:
    write_scene(folder / "scene.tif")
    other = write_scene(secret.parent / "other.tif", plume((35, 45)))
    (folder / "scene.tif.ovr").symlink_to(other)


def linked_mask(folder: Path, secret: Path) -> None:
    write_scene(folder / "scene.tif")
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False):
        write_scene(secret.parent / "other.tif", mask=~plume())
    (folder / "scene.tif.msk").symlink_to(secret.parent / "other.tif.msk")


def vrt_as_envi(folder: Path, secret: Path) -> None:
    write_text(folder / "scene.tif", vrt_to(secret, bands=4))
    write_text(folder / "scene.hdr", "ENVI\nsamples = 4\nlines = 4\nbands = 4\ndata type = 1\n")


ATTACKS = {
    "vrt as scene": vrt_as_scene,
    "vrt as overviews": vrt_beside(".ovr"),
    "vrt as mask": mask_as_vrt,
    "overviews named in aux.xml": overviews_in_aux,
    "overviews inline in aux.xml": overviews_inline,
    "overviews of the mask": overviews_of_mask,
    "overviews are a link": linked_overviews,
    "mask is a link": linked_mask,
    "vrt with an ENVI header": vrt_as_envi,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_another_file_reaches_an_output(attack, tmp_path, model, bright, run) -> None:
    """Refused, or as if the bait were not there."""
    secret = write_text(tmp_path / "home" / "secret.bin", SECRET)
    for place in ("clean", "out"):
        (tmp_path / place).mkdir()
    folder = tmp_path / "in"
    folder.mkdir()
    ATTACKS[attack](folder, secret)
    before = contents(tmp_path)

    def outputs(place: str) -> list[object]:
        base = tmp_path / place
        return ["--out", base / "a.gpkg", "--prob", base / "p.tif", "--map", base / "m.html"]

    result = run("predict", folder / "scene.tif", *outputs("out"), "--model", model)
    assert "TOPSECRET" not in result.output
    if attack in MUST_REFUSE or result.exit_code:
        assert_refused(result, 3, r"scene\.tif", {str(tmp_path): before})
        return
    alone = tmp_path / "alone" / "scene.tif"
    alone.parent.mkdir()
    shutil.copy(folder / "scene.tif", alone)
    if attack == "overviews of the mask":
        shutil.copy(f"{folder / 'scene.tif'}.msk", f"{alone}.msk")
    assert_done(run("predict", alone, *outputs("clean"), "--model", model))
    assert contents(tmp_path / "out") == contents(tmp_path / "clean")


MUST_REFUSE = set(ATTACKS) - {"overviews of the mask", "overviews inline in aux.xml"}


@pytest.mark.parametrize("attack", sorted(MUST_REFUSE))
def test_info_refuses_them_as_well(attack, tmp_path, run) -> None:
    secret = write_text(tmp_path / "home" / "secret.bin", SECRET)
    folder = tmp_path / "in"
    folder.mkdir()
    ATTACKS[attack](folder, secret)
    result = run("info", folder / "scene.tif")
    assert "TOPSECRET" not in result.output
    assert_refused(result, 3, r"scene\.tif", {})


NAMES = (
    "s3:x.tif",
    "zip:a.tif",
    "http:a.tif",
    "GTIFF_DIR:1:a.tif",
    "GTIFF_RAW:a.tif",
    "vrt:a.tif",
    "scene (1).tif",
    "a#b.tif",
    "100%25.tif",
    "a?b=c&d.tif",
    "[abc]*.tif",
    "дым.tif",
    "煙 🔥.tif",
    "two\nlines.tif",
    "'quotes\".tif",
    "<script>alert(1)<%2Fscript>.tif",
    "a,b;c|d$(touch x)`touch y`.tif",
    "no suffix",
    ".hidden.tif",
    "trailing .tif ",
    "a\\b.tif",
)


@pytest.mark.parametrize("name", NAMES)
def test_any_file_name_is_a_file_name(name, tmp_path, model, bright, run, monkeypatch) -> None:
    """Relative to the current folder, where GDAL would take some of them for an address."""
    write_scene(tmp_path / "plain.tif")
    (tmp_path / "plain.tif").rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    outputs = ("--out", "a.gpkg", "--map", "m.html", "--prob", "p.tif")
    assert_done(run("predict", *outputs, "--model", model, "--", name))
    assert polygons(tmp_path / "a.gpkg")["source"].tolist() == [name] * 2
    assert set(contents(tmp_path)) == {name, "a.gpkg", "m.html", "p.tif"}
    assert "<script>alert" not in (tmp_path / "m.html").read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_any_name_will_do_for_an_output(name, tmp_path, model, bright, run, monkeypatch) -> None:
    write_scene(tmp_path / "scene.tif")
    monkeypatch.chdir(tmp_path)
    for suffix in (".gpkg", ".fgb"):
        assert_done(run("predict", "scene.tif", f"--out={name}{suffix}", "--model", model))
    made = {f"{name}{s}" for s in (".gpkg", ".fgb", ".qml")}
    assert set(contents(tmp_path)) == {"scene.tif", *made}


def test_a_name_that_is_not_unicode_is_refused(tmp_path, model, bright, run, monkeypatch) -> None:
    write_scene(tmp_path / "plain.tif")
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"sc\xe9ne.tif")
    (tmp_path / "plain.tif").rename(tmp_path / name)
    result = run("predict", name, "--out", "a.gpkg", "--model", model)
    assert_refused(result, 3, r"sc\?ne\.tif.*not UTF-8.*Rename it", {})
    assert list(contents(tmp_path)) == [name]


def test_a_linked_scene_has_the_name_of_the_link(tmp_path, model, bright, run) -> None:
    real = write_scene(tmp_path / "real" / "scene.tif")
    link = tmp_path / "link.tif"
    link.symlink_to(real)
    assert_done(run("predict", link, "--out", tmp_path / "a.gpkg", "--model", model))
    assert polygons(tmp_path / "a.gpkg")["source"].tolist() == ["link.tif"] * 2


def test_tags_with_markup_and_control_characters_stay_text(tmp_path, model, bright, run) -> None:
    names = ("red", "green", "blue", "</script><script>alert(1)</script>")
    path = write_scene(tmp_path / "scene.tif", names=names)
    outputs = ("--out", tmp_path / "a.geojson", "--map", tmp_path / "m.html")
    assert_done(run("predict", path, *outputs, "--model", model))
    assert "<script>alert" not in (tmp_path / "m.html").read_text("utf-8")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/proc/self/mem", "/dev/null"])
def test_devices_are_no_scenes_and_do_not_hang(device, tmp_path, model, bright, run) -> None:
    result = run("predict", device, "--out", tmp_path / "a.gpkg", "--model", model)
    assert_refused(result, 3, Path(device).name, {str(tmp_path): {}})


def test_a_pipe_does_not_hang(tmp_path, model, bright, run) -> None:
    os.mkfifo(tmp_path / "scene.tif")
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "a.gpkg"
    result = run("predict", tmp_path / "scene.tif", "--out", out, "--model", model)
    assert_refused(result, 3, "scene.tif", {str(tmp_path / "out"): {}})
