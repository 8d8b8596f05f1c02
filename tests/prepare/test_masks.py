"""Masks in every convention people use, and the votes of three annotators."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio
import scipy.io
from PIL import Image
from prepare.native_files import HEIGHT, WIDTH, cube, folder, mask, write_tif

from smokegeo.errors import InputError
from smokegeo.labels import read_labels
from smokegeo.prepare.run import prepare

SMOKE = mask("x")
WITH_IGNORED = np.where(mask("y") == 1, 255, SMOKE).astype(np.uint8)
VOTES = np.stack([mask("one"), mask("two"), mask("three")])


@pytest.fixture
def src(tmp_path):
    root = folder(tmp_path, "src")
    np.save(folder(root, "images") / "x.npy", cube("x"))
    folder(root, "masks")
    return root


def palette(values, colours):
    picture = Image.new("P", (WIDTH, HEIGHT))
    picture.putdata(values.ravel().tolist())
    picture.putpalette([channel for colour in colours for channel in colour])
    return picture


def colour(values, rgb):
    return Image.fromarray(values[..., None] * np.array(rgb, np.uint8))


PICTURES = {
    "0 and 1": (Image.fromarray(SMOKE), SMOKE),
    "0 and 255": (Image.fromarray(SMOKE * 255), SMOKE),
    "0, 1 and 255 for ignored": (Image.fromarray(WITH_IGNORED), WITH_IGNORED),
    "one bit": (Image.fromarray(SMOKE.astype(bool)), SMOKE),
    "palette, black first": (palette(SMOKE, [(0, 0, 0), (128, 0, 0)]), SMOKE),
    "palette, black last": (palette(1 - SMOKE, [(255, 255, 255), (0, 0, 0)]), SMOKE),
    "palette, any index": (palette(SMOKE * 7, [(0, 0, 0)] * 7 + [(9, 9, 9)]), SMOKE),
    "palette of VOC": (
        palette(WITH_IGNORED, [(0, 0, 0), (128, 0, 0)] + [(1, 2, 3)] * 253 + [(224, 224, 192)]),
        WITH_IGNORED,
    ),
    "palette, black last, no smoke": (
        palette(SMOKE * 0 + 1, [(255, 0, 0), (0, 0, 0)]),
        SMOKE * 0,
    ),
    "palette, black last, all smoke": (
        palette(SMOKE * 0, [(255, 0, 0), (0, 0, 0)]),
        SMOKE * 0 + 1,
    ),
    "palette, black first, all smoke": (
        palette(SMOKE * 0 + 1, [(0, 0, 0), (128, 0, 0)]),
        SMOKE * 0 + 1,
    ),
    "palette that is all black, all smoke": (
        palette(SMOKE * 0 + 1, [(0, 0, 0), (0, 0, 0)]),
        SMOKE * 0 + 1,
    ),
    "white on black in RGB": (colour(SMOKE, (255, 255, 255)), SMOKE),
    "red on black": (colour(SMOKE, (200, 10, 10)), SMOKE),
    "white in RGBA": (colour(SMOKE, (255, 255, 255)).convert("RGBA"), SMOKE),
    "16 bit": (Image.fromarray(SMOKE.astype(np.uint16) * 255), SMOKE),
    "nothing marked": (Image.fromarray(SMOKE * 0), SMOKE * 0),
}


@pytest.mark.parametrize("form", PICTURES)
def test_pictures_of_masks_are_understood(form, src, tmp_path):
    picture, expected = PICTURES[form]
    picture.save(src / "masks" / "x.png")
    done = prepare("hss", src, tmp_path / "dst")
    np.testing.assert_array_equal(read_labels(done.root / "masks" / "x.tif").values, expected)


def save_folders(root, names):
    for name, layer in zip(names, VOTES, strict=True):
        Image.fromarray(layer * 255).save(folder(root, name) / "x.png")


STACKS = {
    "npy, first axis": lambda root: np.save(root / "masks" / "x.npy", VOTES),
    "npy, last axis": lambda root: np.save(root / "masks" / "x.npy", np.moveaxis(VOTES, 0, -1)),
    "mat": lambda root: scipy.io.savemat(
        root / "masks" / "x.mat", {"masks": np.moveaxis(VOTES, 0, -1)}
    ),
    "tif": lambda root: write_tif(root / "masks" / "x.tif", VOTES),
    "multi-page tif": lambda root: Image.fromarray(VOTES[0]).save(
        root / "masks" / "x.tif",
        save_all=True,
        append_images=[Image.fromarray(layer) for layer in VOTES[1:]],
    ),
    "masks_1 to masks_3": lambda root: save_folders(root, ["masks_1", "masks_2", "masks_3"]),
    "annotator folders": lambda root: save_folders(
        root, ["masks/annotator1", "masks/annotator2", "masks/Annotator3"]
    ),
    "suffixes": lambda root: [
        Image.fromarray(layer).save(root / "images" / f"x_mask_{number}.png")
        for number, layer in enumerate(VOTES, start=1)
    ],
}


@pytest.mark.parametrize("form", STACKS)
def test_two_of_three_annotators_decide_and_their_votes_are_kept(form, src, tmp_path):
    STACKS[form](src)
    done = prepare("hss", src, tmp_path / "dst")
    majority = (VOTES.sum(axis=0) >= 2).astype(np.uint8)
    np.testing.assert_array_equal(read_labels(done.root / "masks" / "x.tif").values, majority)
    with rasterio.open(done.root / "votes" / "x.tif", driver="GTiff") as votes:
        np.testing.assert_array_equal(votes.read(1), VOTES.sum(axis=0))
    assert done.facts["annotators"] == [3]


REFUSED = {
    "other values": (lambda p: Image.fromarray(SMOKE * 7).save(p), r"mask values: x \(0, 7\)"),
    "two colours": (
        lambda p: Image.fromarray(
            np.stack([SMOKE * 255, mask("y") * 255, SMOKE * 0], axis=-1)
        ).save(p),
        r"mask values: x \(colours \(0, 0, 0\), \(0, 255, 0\)",
    ),
    "other size": (
        lambda p: Image.fromarray(SMOKE[:, :10]).save(p),
        r"mask size differs: x \(16x12, mask 10x12\)",
    ),
    "transposed": (
        lambda p: Image.fromarray(SMOKE.T.copy()).save(p),
        r"mask size differs: x \(16x12, mask 12x16\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_masks_are_refused_and_their_values_said(case, src, tmp_path):
    write, message = REFUSED[case]
    write(src / "masks" / "x.png")
    with pytest.raises(InputError, match=message):
        prepare("hss", src, tmp_path / "dst")


def test_a_red_tif_is_not_taken_for_three_annotators(src, tmp_path):
    write_tif(src / "masks" / "x.tif", np.stack([SMOKE * 255, SMOKE * 0, SMOKE * 0]))
    with pytest.raises(InputError, match="mask is ambiguous: x"):
        prepare("hss", src, tmp_path / "dst")


def test_a_tif_white_on_black_in_three_colours_is_one_mask(src, tmp_path):
    write_tif(src / "masks" / "x.tif", np.stack([SMOKE * 255] * 3))
    done = prepare("hss", src, tmp_path / "dst")
    np.testing.assert_array_equal(read_labels(done.root / "masks" / "x.tif").values, SMOKE)
    assert done.facts["annotators"] == [1]
    assert not (done.root / "votes").exists()


@pytest.mark.parametrize("values", [SMOKE, SMOKE * 0])
def test_annotators_who_agree_stay_three(values, src, tmp_path):
    write_tif(src / "masks" / "x.tif", np.stack([values] * 3))
    done = prepare("hss", src, tmp_path / "dst")
    assert done.facts["annotators"] == [3]
    assert (done.root / "votes").exists()


def test_annotators_masks_go_before_the_merged_one(src, tmp_path):
    save_folders(src, ["masks_1", "masks_2", "masks_3"])
    Image.fromarray(SMOKE).save(src / "masks" / "x.png")
    assert prepare("hss", src, tmp_path / "dst").facts["annotators"] == [3]


def test_three_files_of_one_mask_are_not_three_annotators(src, tmp_path):
    for suffix in ("png", "bmp", "tif"):
        Image.fromarray(SMOKE).save(src / "masks" / f"x.{suffix}")
    with pytest.raises(InputError, match="duplicate mask: x"):
        prepare("hss", src, tmp_path / "dst")


def test_two_annotators_have_no_majority(src, tmp_path):
    np.save(src / "masks" / "x.npy", VOTES[:2])
    with pytest.raises(InputError, match="two masks: x"):
        prepare("hss", src, tmp_path / "dst")


def test_255_with_two_meanings_in_one_dataset_is_pointed_out(src, tmp_path, caplog):
    Image.fromarray(WITH_IGNORED).save(src / "masks" / "x.png")
    np.save(src / "images" / "y.npy", cube("y"))
    Image.fromarray(SMOKE * 255).save(src / "masks" / "y.png")
    prepare("hss", src, tmp_path / "dst")
    assert "read as smoke where 1 is absent: y" in caplog.text
