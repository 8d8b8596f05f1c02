from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rasterio

from smokegeo.cubes import cube_bands, read_cube
from smokegeo.datasets.layout import (
    SCENE_SCENARIOS,
    SMOKE_SCENARIOS,
    FrameRecord,
    load_layout,
    read_checksums,
)
from smokegeo.datasets.splits import check_splits
from smokegeo.errors import OutputError, UsageError
from smokegeo.files import sha256
from smokegeo.sensors import sensor
from smokegeo.simulate.backgrounds import Background, Backgrounds
from smokegeo.simulate.dataset import (
    DatasetPlan,
    _backgrounds,
    _scales,
    _splits,
    simulate_dataset,
)

PLAN = DatasetPlan("mss", 13, 4, (32, 24))


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.parametrize("kind", ["hss", "mss", "satellite"])
def test_a_simulated_dataset_is_a_prepared_one(tmp_path, kind):
    facts = simulate_dataset(tmp_path / "data", replace(PLAN, kind=kind))
    layout = load_layout(tmp_path / "data", kind)
    assert layout.bands == sensor(kind).bands
    assert len(layout.frames) == facts.frames == 13
    assert layout.facts["simulated"] is True
    splits = {name: layout.split_ids(name) for name in ("train", "val", "test")}
    assert all(splits.values())
    check_splits(splits, [frame.id for frame in layout.frames])
    for frame in layout.frames:
        scene, smoke = frame.scenarios
        assert scene in SCENE_SCENARIOS
        assert smoke in SMOKE_SCENARIOS
        assert (frame.width, frame.height) == (32, 24)
    one = layout.frames[3]
    assert cube_bands(read_cube(layout.image(one.id))).names == sensor(kind).bands.names
    with (
        rasterio.open(layout.mask(one.id)) as mask,
        rasterio.open(layout.root / "votes" / f"{one.id}.tif") as votes,
    ):
        labels = mask.read(1)
        assert np.array_equal(labels == 1, votes.read(1) >= 2)
        assert int((labels == 1).sum()) == one.smoke_pixels


def test_no_video_is_split(tmp_path):
    simulate_dataset(tmp_path / "data", PLAN)
    layout = load_layout(tmp_path / "data")
    scene_of = {frame.id: frame.scene for frame in layout.frames}
    scenes = [{scene_of[i] for i in layout.split_ids(name)} for name in ("train", "val", "test")]
    assert not scenes[0] & scenes[1]
    assert not scenes[0] & scenes[2]
    assert not scenes[1] & scenes[2]


def test_the_number_of_workers_changes_no_byte(tmp_path):
    simulate_dataset(tmp_path / "one", PLAN, workers=1)
    simulate_dataset(tmp_path / "two", PLAN, workers=2)
    one, two = tree(tmp_path / "one"), tree(tmp_path / "two")
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []
    sums = read_checksums(tmp_path / "one")
    assert all(sha256(tmp_path / "one" / name) == digest for name, digest in sums.items())


def test_satellite_frames_lie_in_a_utm_zone_and_never_touch(tmp_path):
    simulate_dataset(tmp_path / "data", replace(PLAN, kind="satellite"))
    layout = load_layout(tmp_path / "data")
    boxes = []
    for frame in layout.frames:
        with rasterio.open(layout.image(frame.id)) as src:
            assert 32601 <= src.crs.to_epsg() <= 32660
            assert src.res[0] in (10.0, 20.0, 30.0)
            boxes.append(src.bounds)
    for n, a in enumerate(boxes):
        for b in boxes[:n]:
            apart = a.left >= b.right or b.left >= a.right or a.bottom >= b.top or b.bottom >= a.top
            assert apart


def test_facts_count_frames_by_scale_and_scenario(tmp_path):
    facts = simulate_dataset(tmp_path / "data", PLAN)
    assert sum(facts.scales.values()) == 13
    assert sum(facts.scenarios.values()) == 26
    assert sum(facts.agreement.shares().values()) == pytest.approx(1)


def test_a_frame_without_smoke_has_no_scale():
    smoke = [0, 1, 100]
    records = [FrameRecord("a", "", (), 100, 10, pixels, 0, True) for pixels in smoke]
    assert _scales(records) == {"small": 1, "medium": 0, "large": 1}


def rasters(count: int) -> Backgrounds:
    return Backgrounds(tuple(Background(Path(f"{n}.tif"), 9, 9, (), 1.0) for n in range(count)))


@pytest.mark.parametrize("count", [3, 7])
def test_no_background_is_in_two_splits(count):
    plan = replace(PLAN, backgrounds=rasters(count))
    dealt, splits = _backgrounds(plan), _splits(plan)
    assert len(dealt) == 4
    used = [
        {raster.path for i in ids for raster in dealt[int(i[-5:]) // 4].rasters}
        for ids in splits.values()
    ]
    assert all(used)
    assert sum(map(len, used)) == len(set.union(*used)) == count
    assert dealt == _backgrounds(plan)


def test_backgrounds_too_few_to_be_dealt_are_shared_and_that_is_told(caplog):
    plan = replace(PLAN, backgrounds=rasters(2))
    assert _backgrounds(plan) == [plan.backgrounds] * 4
    assert "takes 3 rasters (there are 2) and 3 videos of 4 frames" in caplog.text
    caplog.clear()
    assert _backgrounds(PLAN) == [None] * 4
    assert not caplog.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"count": 0}, "count 0"),
        ({"size": (15, 40)}, "15x40"),
        ({"scenarios": ("fog",)}, "fog"),
        ({"seed": -1}, "seed -1"),
    ],
)
def test_impossible_plans_are_refused(change, words):
    with pytest.raises(UsageError, match=words):
        replace(PLAN, **change)


def test_an_existing_folder_is_kept_unless_told(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match="exists"):
        simulate_dataset(tmp_path / "data", replace(PLAN, count=1))
    assert [p.name for p in tmp_path.iterdir()] == ["data"]


def test_only_a_dataset_or_an_empty_folder_is_overwritten(tmp_path):
    plan, out = replace(PLAN, count=1), tmp_path / "data"
    out.mkdir()
    simulate_dataset(out, plan, overwrite=True)
    (out / "mine.txt").write_text("x")
    simulate_dataset(out, plan, overwrite=True)
    assert not (out / "mine.txt").exists()
    (out / "dataset.json").unlink()
    before = tree(out)
    with pytest.raises(UsageError, match="stays as it is"):
        simulate_dataset(out, plan, overwrite=True)
    assert tree(out) == before


@pytest.mark.parametrize(("count", "told"), [(2, True), (3, False)])
def test_a_split_without_frames_is_told(tmp_path, caplog, count, told):
    simulate_dataset(tmp_path / "data", replace(PLAN, count=count))
    assert ("no frame is in" in caplog.text) == told
    layout = load_layout(tmp_path / "data")
    assert all(layout.split_ids(name) for name in ("train", "val", "test")) != told


def test_a_dataset_that_cannot_fit_is_refused_at_once(tmp_path):
    with pytest.raises(OutputError, match="GB needed"):
        simulate_dataset(tmp_path / "data", replace(PLAN, count=10**12))
    assert not list(tmp_path.iterdir())
