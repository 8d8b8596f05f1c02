"""Which files belong together, which scene and split they are of."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from prepare.native_files import IDS, cube, folder, mask, write_npy, write_parquet

from smokegeo.datasets.layout import load_layout
from smokegeo.errors import InputError
from smokegeo.prepare.names import Role, frame_number, natural, read_name, scene_of
from smokegeo.prepare.run import Options, prepare
from smokegeo.prepare.walk import files_below


@pytest.fixture
def src(tmp_path):
    return folder(tmp_path, "src")


def save(root, path, values=None):
    """Save a cube (.npy), or a mask as a picture, at a path below root."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if values is None:
        values = cube("x") if target.suffix == ".npy" else mask("x")
    np.save(target, values) if target.suffix == ".npy" else Image.fromarray(values).save(target)


def prepared_ids(src, tmp_path, kind="hss", **options):
    prepare(kind, src, tmp_path / "dst", Options(**options))
    return [frame.id for frame in load_layout(tmp_path / "dst").frames]


@pytest.mark.parametrize(
    ("image", "label", "expected"),
    [
        ("images/x.npy", "masks/x.png", "x"),
        ("Images/x.npy", "SegmentationClass/X.png", "x"),
        ("cubes/x_hsi.npy", "labels/x_label.png", "x"),
        ("x.npy", "x_mask.png", "x"),
        ("x.npy", "x-GT.png", "x"),
        ("HSSDataset/images/x.npy", "HSSDataset/annotations/x.png", "x"),
        ("x/cube.npy", "x/mask.png", "x"),
        ("images/7.npy", "masks/frame (7).png", "7"),
        ("images/v2.raw.x.npy", "masks/v2.raw.x.png", "v2.raw.x"),
        ("images/smoke at 10.5 m.npy", "masks/smoke at 10.5 m.png", "smoke-at-10.5-m"),
    ],
)
def test_a_mask_is_found_by_its_name(image, label, expected, src, tmp_path):
    save(src, image)
    save(src, label)
    assert prepared_ids(src, tmp_path) == [expected]


def test_folders_are_scenes_and_keep_equal_names_apart(src, tmp_path):
    for scene in ("plant", "stack"):
        save(src, f"images/{scene}/001.npy")
        save(src, f"masks/{scene}/001.png")
    assert prepared_ids(src, tmp_path) == ["plant-001", "stack-001"]
    assert [frame.scene for frame in load_layout(tmp_path / "dst").frames] == ["plant", "stack"]


def test_a_mask_of_another_scene_is_never_taken(src, tmp_path):
    save(src, "images/plant/001.npy")
    save(src, "masks/plant/001.png")
    save(src, "images/plant/002.npy")
    save(src, "masks/stack/002.png")
    with pytest.raises(InputError, match=r"no image: stack-002 \(002.png\); no mask: plant-002"):
        prepare("hss", src, tmp_path / "dst")


def test_masks_may_lie_flat_beside_scene_folders(src, tmp_path):
    for scene, label in (("plant", "masks/plant_001.png"), ("stack", "masks/002.png")):
        save(src, f"images/{scene}/00{1 if scene == 'plant' else 2}.npy")
        save(src, label)
    assert prepared_ids(src, tmp_path) == ["plant-001", "stack-002"]


def test_equal_names_in_two_split_folders_are_two_frames(src, tmp_path):
    for split in ("train", "test"):
        save(src, f"{split}/images/001.npy")
        save(src, f"{split}/masks/001.png")
    save(src, "valid/images/002.npy")
    save(src, "valid/masks/002.png")
    assert prepared_ids(src, tmp_path) == ["002", "test-001", "train-001"]
    layout = load_layout(tmp_path / "dst")
    assert layout.split_ids("train") == ("train-001",)
    assert layout.split_ids("val") == ("002",)
    assert layout.split_ids("test") == ("test-001",)


@pytest.mark.parametrize("where", ["ImageSets/Segmentation", "splits", "."])
def test_shipped_lists_decide_the_splits(where, src, tmp_path):
    write_npy(src)
    lists = folder(src, where)
    (lists / "train.txt").write_text("a_02\n")
    (lists / "validation.txt").write_text("images/b_01.npy masks/b_01.png\n")
    (lists / "test.txt").write_text("A_01.npy\n\n")
    done = prepare("hss", src, tmp_path / "dst")
    layout = load_layout(done.root)
    assert [layout.split_ids(s) for s in ("train", "val", "test")] == [
        ("a_02",),
        ("b_01",),
        ("a_01",),
    ]
    assert done.facts["splits_from"] == "lists of the data"


@pytest.mark.parametrize(
    "line",
    [
        "0001",
        "0001.npy",
        "images/0001.npy masks/0001.png",
        "{}/0001",
        "{}/0001.npy",
        "{}/images/0001.npy",
        "./{}/images/0001.npy",
    ],
)
def test_lists_of_splits_that_reuse_names_mean_their_own(line, src, tmp_path):
    for split in ("train", "val", "test"):
        save(src, f"{split}/images/0001.npy")
        save(src, f"{split}/masks/0001.png")
        (src / f"{split}.txt").write_text(line.format(split) + "\n")
    prepare("hss", src, tmp_path / "dst")
    layout = load_layout(tmp_path / "dst")
    for split in ("train", "val", "test"):
        assert layout.split_ids(split) == (f"{split}-0001",)


def test_a_line_that_names_a_folder_means_it_whatever_the_list(src, tmp_path):
    for split in ("train", "test"):
        save(src, f"{split}/images/0001.npy")
        save(src, f"{split}/masks/0001.png")
    (src / "train.txt").write_text("test/0001.npy\n")
    (src / "test.txt").write_text("train/0001.npy\n")
    (src / "scenarios.csv").write_text("train/0001.npy,early_stage\n0001,complex_shape\n")
    prepare("hss", src, tmp_path / "dst")
    layout = load_layout(tmp_path / "dst")
    assert layout.split_ids("train") == ("test-0001",)
    assert {frame.id: frame.scenarios for frame in layout.frames} == {
        "test-0001": (),
        "train-0001": ("early_stage",),
    }


def test_lists_and_tables_that_cannot_be_read_are_refused_with_a_remedy(src, tmp_path):
    write_npy(src)
    (src / "train.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"train.txt: cannot be read as text .*\. Save it as"):
        prepare("hss", src, tmp_path / "dst")
    (src / "all.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"cannot be read as parquet .*\. Fetch it again\."):
        prepare("hss", src, tmp_path / "dst")


def test_a_folder_that_cannot_be_walked_is_refused_with_a_remedy(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read \(No such .*\)\. Make it readable"):
        files_below(tmp_path / "gone", "hss")


def test_trainval_without_train_is_train_less_val(src, tmp_path):
    write_npy(src)
    (src / "trainval.txt").write_text("a_01\na_02\nb_01\n")
    (src / "val.txt").write_text("b_01\n")
    prepare("hss", src, tmp_path / "dst")
    assert load_layout(tmp_path / "dst").split_ids("train") == ("a_01", "a_02")


def test_lists_that_name_missing_frames_or_overlap_are_refused(src, tmp_path):
    write_npy(src)
    (src / "train.txt").write_text("a_01\nnowhere\n")
    with pytest.raises(InputError, match=r"train.txt lists frames that are not there: nowhere"):
        prepare("hss", src, tmp_path / "dst")
    (src / "train.txt").write_text("".join(f"none_{n}\n" for n in range(3000)))
    with pytest.raises(InputError, match=r"none_19 and 2980 more\. Mend"):
        prepare("hss", src, tmp_path / "dst")
    (src / "train.txt").write_text("a_01\n")
    (src / "test.txt").write_text("a_01\n")
    with pytest.raises(InputError, match="a_01 is in both splits"):
        prepare("hss", src, tmp_path / "dst")


def many(src, scenes=5, frames=4):
    for scene in range(scenes):
        for frame in range(frames):
            save(src, f"images/video{scene}_{frame}.npy")
            save(src, f"masks/video{scene}_{frame}.png")


def test_dealt_splits_are_6_2_2_and_depend_on_the_seed_only(src, tmp_path):
    many(src)
    dealt = []
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        done = prepare("hss", src, tmp_path / name, Options(seed=seed))
        assert done.facts["splits"] == {"train": 12, "val": 4, "test": 4}
        dealt.append(load_layout(done.root).split_ids("train"))
    assert dealt[0] == dealt[1] != dealt[2]


def test_dealt_by_scene_no_video_straddles_splits(src, tmp_path):
    many(src)
    done = prepare("hss", src, tmp_path / "dst", Options(split_by="scene"))
    layout = load_layout(done.root)
    scenes = [{i.split("_")[0] for i in layout.split_ids(s)} for s in ("train", "val", "test")]
    assert sum(len(scene) for scene in scenes) == len(set.union(*scenes)) == 5
    assert done.facts["straddling_scenes"] == 0


def test_every_nth_frame_is_counted_within_each_scene_in_natural_order(src, tmp_path):
    for number in range(1, 12):
        save(src, f"images/v_{number}.npy")
        save(src, f"masks/v_{number}.png")
    assert prepared_ids(src, tmp_path, every=5) == ["v_1", "v_6", "v_11"]


def test_scenario_tags_are_taken_over(src, tmp_path):
    write_npy(src)
    (src / "scenarios.csv").write_text(
        "id,scenario\na_01,cloud interference;early-stage\nb_01,complex_shape\n"
    )
    prepare("hss", src, tmp_path / "dst")
    tags = {frame.id: frame.scenarios for frame in load_layout(tmp_path / "dst").frames}
    assert tags["a_01"] == ("cloud_interference", "early_stage")
    assert tags["a_02"] == ()


def test_forms_nobody_reads_are_mentioned(src, tmp_path, caplog):
    write_npy(src)
    (src / "images" / "d.webp").write_bytes(b"")
    prepare("hss", src, tmp_path / "dst")
    assert "not understood are ignored: 1 .webp" in caplog.text


def test_a_repository_of_both_kinds_gives_the_kind_asked_for(src, tmp_path):
    write_npy(folder(src, "HSSDataset"))
    save(src, "MSSDataset/rgb/x.png", np.zeros((9, 9, 3), np.uint8))
    assert prepared_ids(src, tmp_path) == list(IDS)


def test_shards_of_a_table_are_its_splits(src, tmp_path):
    for split, name in zip(("train", "validation", "test"), IDS, strict=True):
        write_parquet(folder(src, "data") / f"{split}-00000-of-00001.parquet", (name,))
    prepare("hss", src, tmp_path / "dst")
    assert load_layout(tmp_path / "dst").split_ids("val") == (IDS[1],)


# -- RGB and thermal ------------------------------------------------------------------------

RGB = np.random.default_rng(0).integers(0, 256, (9, 11, 3)).astype(np.uint8)
HEAT = np.random.default_rng(1).integers(0, 256, (9, 11)).astype(np.uint8)
LABEL = (HEAT > 128).astype(np.uint8)
FOUR = np.concatenate([np.moveaxis(RGB, -1, 0), HEAT[None]])

PAIRS = {
    "suffixes": [("x_rgb.png", RGB), ("x_ir.png", HEAT)],
    "other suffixes": [("x-RGB.png", RGB), ("x-thermal.png", HEAT)],
    "folders": [("rgb/x.png", RGB), ("thermal/x.png", HEAT)],
    "images and thermal": [("images/x.png", RGB), ("ir/x.png", HEAT)],
    "thermal stored as colour": [("rgb/x.png", RGB), ("ir/x.png", np.stack([HEAT] * 3, -1))],
    "four-channel png": [("images/x.png", np.moveaxis(FOUR, 0, -1))],
    "four-band npy": [("images/x.npy", FOUR)],
    "four-band npy, channels last": [("images/x.npy", np.moveaxis(FOUR, 0, -1))],
}


@pytest.mark.parametrize("form", PAIRS)
def test_rgb_and_thermal_become_four_bands(form, src, tmp_path):
    from smokegeo.cubes import read_cube

    for path, values in PAIRS[form]:
        save(src, path, values)
    save(src, "masks/x.png", LABEL)
    done = prepare("mss", src, tmp_path / "dst")
    np.testing.assert_array_equal(read_cube(done.root / "images" / "x.tif").values, FOUR)
    assert done.bands.names == ("red", "green", "blue", "thermal")


def test_thermal_in_a_palette_is_read_as_what_it_shows(src, tmp_path):
    from smokegeo.cubes import read_cube

    picture = Image.fromarray(255 - HEAT)
    picture.putpalette([255 - n for n in range(256) for _ in range(3)])
    save(src, "rgb/x.png", RGB)
    folder(src, "ir")
    picture.save(src / "ir" / "x.png")
    save(src, "masks/x.png", LABEL)
    done = prepare("mss", src, tmp_path / "dst")
    np.testing.assert_array_equal(read_cube(done.root / "images" / "x.tif").values, FOUR)


def test_flame2_frames_pair_by_the_number_in_brackets(src, tmp_path):
    for number in (2, 10, 1):
        save(src, f"254p RGB Images/254p RGB Frame ({number}).jpg", RGB)
        save(src, f"254p Thermal Images/254p Thermal Frame ({number}).jpg", RGB)
        save(src, f"masks/{number}.png", LABEL)
    assert prepared_ids(src, tmp_path, "mss") == [f"254p-Frame-{n}" for n in (1, 2, 10)]
    head = json.loads((tmp_path / "dst" / "dataset.json").read_text())
    assert head["facts"]["forms"] == ["RGB and thermal pairs"]


@pytest.mark.parametrize(
    ("left_out", "message"),
    [("rgb/x.png", "no RGB frame: x"), ("ir/x.png", "no thermal frame: x")],
)
def test_half_a_pair_is_named(left_out, message, src, tmp_path):
    for path, values in (("rgb/x.png", RGB), ("ir/x.png", HEAT), ("masks/x.png", LABEL)):
        if path != left_out:
            save(src, path, values)
    with pytest.raises(InputError, match=message):
        prepare("mss", src, tmp_path / "dst")


# -- names ----------------------------------------------------------------------------------


def test_254_is_not_a_frame_number():
    assert frame_number("254p RGB Frame (12)") == 12
    assert frame_number("0012") == 12
    assert frame_number("254p") is None


def test_names_are_read_without_regard_to_case():
    from pathlib import PurePath

    name = read_name(PurePath("Train/Masks_2/A/x_GT.png"), pairs=False)
    assert (name.role, name.key, name.split, name.annotator) == (Role.MASK, ("A", "x"), "train", 2)


def test_scene_and_natural_order():
    assert scene_of(("plant", "001")) == "plant"
    assert scene_of(("video_3-017",)) == "video_3"
    assert scene_of(("017",)) == ""
    assert sorted(["b10", "b9", "B2"], key=natural) == ["B2", "b9", "b10"]
