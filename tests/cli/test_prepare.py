"""`smokegeo prepare` as a user meets it: what it prints, and how it refuses."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
from PIL import Image
from prepare.native_files import IDS, cube, folder, mask, write_envi, write_npy, write_tif
from rasterio.crs import CRS
from rasterio.transform import Affine, from_origin

from smokegeo.cubes import read_cube
from smokegeo.datasets.layout import load_layout
from smokegeo.errors import Terminated


@pytest.fixture
def src(tmp_path):
    return write_npy(folder(tmp_path, "src"))


def snapshot(root: Path) -> dict[str, str]:
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_says_what_it_found_where_it_lies_and_what_comes_next(run, src, tmp_path):
    before = snapshot(src)
    result = run("prepare", "hss", src, tmp_path / "dst")
    assert result.exit_code == 0, result.output
    for line in (
        "form      npy",
        "samples   3",
        "bands     25: 600nm to 974nm",
        "sizes     16x12",
        "dtype     uint16",
        "masks     one per frame, values {0, 255}",
        "splits    train 1, val 1, test 1 (dealt 6:2:2 by frame, seed 0)",
        "scenes    2",
        f"Dataset written to {tmp_path / 'dst'}.",
        f"Next: smokegeo check {tmp_path / 'dst'}",
    ):
        assert line in result.output
    assert run("check", tmp_path / "dst").exit_code == 0
    assert snapshot(src) == before


def test_json_holds_the_same_facts(run, src, tmp_path):
    result = run("prepare", "hss", src, tmp_path / "dst", "--json", "--quiet")
    facts = json.loads(result.stdout)
    assert facts["path"] == str(tmp_path / "dst")
    assert facts["samples"] == 3
    assert facts["bands"][0] == {"name": "600nm", "wavelength_nm": 600, "fwhm_nm": 15}
    assert dict(load_layout(tmp_path / "dst").facts).items() <= facts.items()


def test_help_teaches_and_starts_quickly():
    code = (
        "import sys; from smokegeo.cli import cli\n"
        "try: cli(['prepare', '--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'numpy', 'torch', 'rasterio'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "smokegeo prepare hss HSSDataset.zip hss" in done.stdout


# -- faults ---------------------------------------------------------------------------------


def x_cube(form):
    """Return a fault that replaces the cube of a_01 by something in another form."""

    def damage(src):
        (src / "images" / "a_01.npy").unlink()
        form(src / "images" / "a_01")

    return damage


def cut(write, share=0.6):
    """Return a writer of a file that ends too early."""

    def damage(path):
        written = write(path)
        content = written.read_bytes()
        written.write_bytes(content[: int(len(content) * share)])

    return damage


def tif(path, values=None, **profile):
    write_tif(path.with_suffix(".tif"), cube("a_01") if values is None else values, **profile)
    return path.with_suffix(".tif")


def mat(path, **contents):
    scipy.io.savemat(path.with_suffix(".mat"), contents or {"cube": cube("a_01")})
    return path.with_suffix(".mat")


def h5(path, shape=lambda file: file.create_dataset("cube", data=cube("a_01"))):
    with h5py.File(path.with_suffix(".h5"), "w") as file:
        shape(file)
    return path.with_suffix(".h5")


def npz(path):
    np.savez_compressed(path.with_suffix(".npz"), cube=cube("a_01"))
    return path.with_suffix(".npz")


def envi(path):
    write_envi(path.with_suffix(".bsq"), cube("a_01"), "bsq")
    return path.with_suffix(".bsq")


def external_raw(file):
    file.create_dataset("cube", (25, 12, 16), "u2", external=[("/etc/passwd", 0, 9600)])


def virtual(file):
    layout = h5py.VirtualLayout((25, 12, 16), "u2")
    layout[:] = h5py.VirtualSource("other.h5", "cube", (25, 12, 16))
    file.create_virtual_dataset("cube", layout)


def vrt_named_tif(path):
    path.with_suffix(".tif").write_text(
        '<VRTDataset rasterXSize="16" rasterYSize="12"><VRTRasterBand dataType="Byte" band="1">'
        "<SimpleSource><SourceFilename>/etc/passwd</SourceFilename></SimpleSource>"
        "</VRTRasterBand></VRTDataset>"
    )


def bomb_png(path):
    """Write a picture that claims 40 000 x 40 000 pixels."""
    head = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    path.with_suffix(".png").write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def pickled(path):
    with path.with_suffix(".npy").open("wb") as handle:
        np.save(handle, np.array([{"run": "me"}], dtype=object), allow_pickle=True)


def huge_npy(path):
    """Write a header that promises a terabyte."""
    header = b"{'descr': '<u2', 'fortran_order': False, 'shape': (25, 150000, 150000)}"
    header += b" " * (117 - len(header)) + b"\n"
    path.with_suffix(".npy").write_bytes(
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    )


def save(values):
    return lambda path: np.save(path.with_suffix(".npy"), values)


def with_nan(value):
    values = cube("a_01").astype(np.float32)
    values[3, 4, 5] = value
    return save(values)


def add(name, values=None):
    """Return a fault that adds an image."""
    return lambda src: np.save(src / "images" / name, cube("x") if values is None else values)


def drop_masks(src):
    (src / "masks" / "a_01.png").unlink()
    (src / "masks" / "b_01.png").unlink()


def several(src):
    drop_masks(src)
    Image.fromarray(mask("a_02")[:, :9]).save(src / "masks" / "a_02.png")
    Image.fromarray(mask("x") * 3).save(src / "masks" / "c.png")
    np.save(src / "images" / "c.npy", cube("x"))


UTM = {"crs": CRS.from_epsg(32633)}
PLACE = {**UTM, "transform": from_origin(0, 0, 1, 1)}
TURNED = {**UTM, "transform": Affine.rotation(30) @ from_origin(5e5, 5e6, 10, 10)}

FAULTS = {
    "no mask": (drop_masks, "2 of 3 samples unusable: no mask: a_01, b_01. Mend or remove them."),
    "several at once": (
        several,
        "4 of 4 samples unusable: no mask: a_01, b_01; mask size differs: a_02 (16x12, mask 9x12); "
        "mask values: c (0, 3). Mend or remove them.",
    ),
    "mask without image": (
        lambda src: (src / "images" / "a_01.npy").unlink(),
        "1 of 3 samples unusable: no image: a_01 (a_01.png)",
    ),
    "same name twice": (
        lambda src: scipy.io.savemat(src / "images" / "a_01.mat", {"cube": cube("a_01")}),
        "duplicate id: a_01 (a_01.mat, a_01.npy)",
    ),
    "same id after cleaning": (
        lambda src: (add("a$1.npy")(src), add("a€1.npy")(src)),
        "duplicate id: a-1",
    ),
    "wrong band count": (x_cube(save(cube("x")[:16])), "wrong band count: a_01 (shape 16x12x16"),
    "wrong band count in tif": (x_cube(lambda p: tif(p, cube("x")[:9])), "a_01 (9 of 25)"),
    "ambiguous axes": (x_cube(save(np.zeros((25, 25, 25), "u2"))), "axes ambiguous: a_01"),
    "NaN": (x_cube(with_nan(np.nan)), "NaN or infinite values: a_01 (1 pixels)"),
    "infinite": (x_cube(with_nan(np.inf)), "NaN or infinite values: a_01"),
    "complex numbers": (x_cube(save(cube("x") * 1j)), "data type: a_01 (complex128"),
    "text": (x_cube(save(np.array([["a"]]))), "unreadable: a_01"),
    "pickle": (x_cube(pickled), "unreadable: a_01 (a_01.npy:"),
    "npy promising a terabyte": (x_cube(huge_npy), "unreadable: a_01 (a_01.npy:"),
    "npy of nothing": (x_cube(lambda p: p.with_suffix(".npy").touch()), "unreadable: a_01"),
    "npy cut short": (
        x_cube(cut(lambda p: save(cube("x"))(p) or p.with_suffix(".npy"))),
        "unreadable: a_01",
    ),
    "npz cut short": (x_cube(cut(npz)), "unreadable: a_01 (a_01.npz:"),
    "tif cut short": (x_cube(cut(tif)), "unreadable: a_01 (a_01.tif:"),
    "compressed tif cut short": (x_cube(cut(lambda p: tif(p, compress="deflate"))), "unreadable"),
    "mat cut short": (x_cube(cut(mat)), "unreadable: a_01 (a_01.mat:"),
    "h5 cut short": (x_cube(cut(h5)), "unreadable: a_01 (a_01.h5:"),
    "ENVI cut short": (x_cube(cut(envi)), "unreadable: a_01 (a_01."),
    "ENVI cut by a little": (x_cube(cut(envi, 0.999)), "unreadable: a_01 (a_01."),
    "ENVI without header": (
        x_cube(lambda p: (envi(p), p.with_suffix(".hdr").unlink())),
        "no .hdr header beside it",
    ),
    "ENVI header alone": (x_cube(lambda p: envi(p).unlink()), "has no data file beside it"),
    "png cut short": (
        lambda src: cut(lambda p: p)(src / "masks" / "a_01.png"),
        "unreadable: a_01 (a_01.png:",
    ),
    "picture bomb": (x_cube(bomb_png), "unreadable: a_01 (a_01.png: Image size"),
    "VRT called tif": (x_cube(vrt_named_tif), "unreadable: a_01 (a_01.tif:"),
    "cells in mat": (
        x_cube(lambda p: mat(p, cube=np.array([[1, "a"]], dtype=object))),
        "a_01.mat holds cell, not plain numeric arrays",
    ),
    "two cubes in mat": (
        x_cube(lambda p: mat(p, one=cube("x"), two=cube("y"))),
        "holds several images: one, two",
    ),
    "h5 link into another file": (
        x_cube(lambda p: h5(p, lambda f: f.update({"c": h5py.ExternalLink("/etc/x.h5", "/")}))),
        "c is a link into another file",
    ),
    "h5 with outside data": (x_cube(lambda p: h5(p, external_raw)), "its data in another file"),
    "h5 with virtual data": (x_cube(lambda p: h5(p, virtual)), "its data in another file"),
    "some frames on a map": (
        x_cube(lambda p: tif(p, **PLACE)),
        "1 of 3 frames are georeferenced (a_01), the others are not (a_02)",
    ),
    "rotated grid": (x_cube(lambda p: tif(p, **TURNED)), "rotated grid: a_01"),
    "bands differ": (
        x_cube(
            lambda p: (
                envi(p),
                p.with_suffix(".hdr").write_text(
                    p.with_suffix(".hdr").read_text().replace("0.974", "0.999")
                ),
            )
        ),
        "bands differ: a_02 (from those of a_01), b_01 (from those of a_01)",
    ),
    "nothing there": (
        lambda src: [shutil.rmtree(path) for path in src.iterdir()],
        "`smokegeo simulate hss --out",
    ),
    "no such folder": (shutil.rmtree, "`smokegeo simulate hss --out"),
    "damaged archive": (
        lambda src: (shutil.rmtree(src), src.mkdir(), (src / "a.zip").write_bytes(b"PK\3\4")),
        "a.zip is damaged",
    ),
    "a split list of others": (
        lambda src: (src / "train.txt").write_text("z_99\n"),
        "frames that are not there: z_99",
    ),
    "prepared already": (
        lambda src: [(src / name).touch() for name in ("dataset.json", "frames.csv")],
        "is prepared already",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults_are_one_line_and_leave_nothing(case, run, src, tmp_path):
    damage, message = FAULTS[case]
    damage(src)
    before = snapshot(src)
    result = run("prepare", "hss", src, tmp_path / "dst")
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert result.exit_code == 3, result.output
    assert len(errors) == 1
    assert message in errors[0]
    assert "Traceback" not in result.output
    assert snapshot(src) == before
    assert {path.name for path in tmp_path.iterdir()} <= {"src"}


def test_skip_faulty_writes_the_rest_and_says_loudly_what_is_missing(run, src, tmp_path):
    drop_masks(src)
    (src / "train.txt").write_text("a_01\na_02\n")
    (src / "test.txt").write_text("b_01\n")
    result = run("prepare", "hss", src, tmp_path / "dst", "--skip-faulty", "--quiet")
    assert result.exit_code == 0, result.output
    assert "Warning: 2 of 3 samples unusable: no mask: a_01, b_01. Left out" in result.stderr
    assert "left out  2: a_01, b_01" in result.stdout
    layout = load_layout(tmp_path / "dst")
    assert [frame.id for frame in layout.frames] == ["a_02"]
    assert layout.facts["left_out"] == {"a_01": "no mask", "b_01": "no mask"}
    assert layout.split_ids("train") == ("a_02",)


def test_splits_without_frames_are_told(run, src, tmp_path):
    (src / "train.txt").write_text("a_01\na_02\n")
    (src / "val.txt").write_text("")
    result = run("prepare", "hss", src, tmp_path / "dst")
    assert result.exit_code == 0, result.output
    assert "Warning: no frame is in val and test; training needs train and val" in result.stderr


def test_skip_faulty_does_not_write_an_empty_dataset(run, src, tmp_path):
    shutil.rmtree(src / "masks")
    result = run("prepare", "hss", src, tmp_path / "dst", "--skip-faulty")
    assert result.exit_code == 3
    assert not (tmp_path / "dst").exists()


def test_an_existing_dataset_is_replaced_only_when_told(run, src, tmp_path):
    dst = tmp_path / "dst"
    assert run("prepare", "hss", src, dst).exit_code == 0
    assert run("prepare", "hss", src, dst).exit_code == 2
    np.save(src / "images" / "a_01.npy", cube("other"))
    assert run("prepare", "hss", src, dst, "--overwrite").exit_code == 0
    np.testing.assert_array_equal(read_cube(dst / "images" / "a_01.tif").values, cube("other"))


def test_a_failed_overwrite_keeps_the_old_dataset(run, src, tmp_path):
    dst = tmp_path / "dst"
    run("prepare", "hss", src, dst)
    before = snapshot(dst)
    drop_masks(src)
    assert run("prepare", "hss", src, dst, "--overwrite").exit_code == 3
    assert snapshot(dst) == before


@pytest.mark.parametrize("where", ["src", "src/inside", "."])
def test_overwrite_never_swallows_the_source(where, run, src, tmp_path):
    before = snapshot(src)
    result = run("prepare", "hss", src, tmp_path / where, "--overwrite")
    assert result.exit_code == 2
    assert snapshot(src) == before


def test_overwrite_spares_folders_that_are_no_dataset(run, src, tmp_path):
    (folder(tmp_path, "home") / "thesis.tex").write_text("years of work")
    assert run("prepare", "hss", src, tmp_path / "home", "--overwrite").exit_code == 2
    assert (tmp_path / "home" / "thesis.tex").exists()


@pytest.mark.parametrize(("signal", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_a_stop_while_writing_leaves_nothing(signal, code, run, src, tmp_path, monkeypatch):
    archive = shutil.make_archive(str(tmp_path / "data"), "zip", src)

    def stop(*_):
        raise signal

    monkeypatch.setattr("smokegeo.prepare.run.finish_layout", stop)
    result = run("prepare", "hss", archive, tmp_path / "dst")
    assert result.exit_code == code
    assert {path.name for path in tmp_path.iterdir()} == {"src", "data.zip"}


def test_a_full_disk_is_noticed_before_anything_is_written(run, src, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    result = run("prepare", "hss", src, tmp_path / "dst")
    assert result.exit_code == 5
    assert {path.name for path in tmp_path.iterdir()} == {"src"}


def test_parquet_without_pyarrow_names_the_extra(run, tmp_path, monkeypatch):
    (folder(tmp_path, "src") / "all.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    result = run("prepare", "hss", tmp_path / "src", tmp_path / "dst")
    assert result.exit_code == 3
    assert "`pip install smokegeo[parquet]`" in result.stderr


def test_one_sample_at_a_time_is_in_memory(src, tmp_path, monkeypatch):
    """No frame outlives its turn, neither when checked nor when written."""
    import weakref

    from smokegeo.prepare import check, run

    alive: list[weakref.ref[object]] = []
    most = 0

    def counting(sample, expected, load=check.load_frame):
        nonlocal most
        loaded = load(sample, expected)
        alive.append(weakref.ref(loaded.frame))
        most = max(most, sum(ref() is not None for ref in alive))
        return loaded

    monkeypatch.setattr(check, "load_frame", counting)
    monkeypatch.setattr(run, "load_frame", counting)
    run.prepare("hss", src, tmp_path / "dst")
    assert len(alive) == 2 * len(IDS)
    assert most <= 2  # the next is read while the name of the last still holds it
