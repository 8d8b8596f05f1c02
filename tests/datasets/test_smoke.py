"""The datasets as TorchGeo sees them."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio
import torch
from random_data import random_frame
from rasterio.transform import from_origin
from torch.utils.data import DataLoader
from torchgeo.datasets import RasterDataset, stack_samples

from smokegeo import HSS, MSS
from smokegeo.cubes import make_cube
from smokegeo.datasets.layout import Frame, finish_layout, write_frame
from smokegeo.datasets.satellite import Satellite
from smokegeo.errors import InputError, UsageError
from smokegeo.sensors import sensor
from smokegeo.torchgeo_api import (
    NEW_SAMPLES,
    frame_slices,
    grid_patches,
    random_patches,
    tensors_only,
)


def number_of(dataset, sample) -> int:
    return int(dataset.records[int(sample["frame"])].id.removeprefix("frame_"))


def test_every_query_returns_exactly_one_frame_bit_for_bit(make_dataset):
    # 70 frames: more than one row of the frame grid.
    dataset = HSS(make_dataset(70, size=(7, 9)).root, split=None)
    seen = []
    for query in frame_slices(dataset):
        sample = dataset[query]
        number = number_of(dataset, sample)
        frame = random_frame(number, size=(7, 9))
        assert torch.equal(sample["image"], torch.tensor(frame.cube.values, dtype=torch.float32))
        assert torch.equal(sample["mask"], torch.tensor(frame.mask, dtype=torch.long))
        seen.append(number)
    assert sorted(seen) == list(range(70))


def test_is_a_torchgeo_raster_dataset_with_long_masks(make_dataset):
    dataset = HSS(make_dataset().root)
    sample = dataset[next(frame_slices(dataset))]
    assert isinstance(dataset, RasterDataset)
    assert sample["image"].dtype == torch.float32
    assert sample["mask"].dtype == torch.long
    assert sample["image"].shape == (25, 24, 40)


def test_random_patches_never_mix_two_frames(make_dataset):
    dataset = HSS(make_dataset(6, size=(40, 40)).root, split=None)
    frames = {n: random_frame(n, size=(40, 40)) for n in range(6)}
    for query in random_patches(dataset, size_px=12, length=40, seed=1):
        sample = dataset[query]
        image = sample["image"].numpy()
        frame = frames[number_of(dataset, sample)].cube.values
        # The patch is a window of that one frame.
        windows = np.lib.stride_tricks.sliding_window_view(frame[0], image.shape[1:])
        assert (windows == image[0]).all(axis=(2, 3)).any()


def test_a_patch_wider_than_a_frame_is_filled_with_ignored_pixels(make_dataset):
    dataset = HSS(make_dataset(4).root, split=None)
    x, y, *_ = next(frame_slices(dataset))
    sample = dataset[slice(x.start - 100, x.stop + 100), slice(y.start - 100, y.stop + 100)]
    assert sample["mask"].shape == (224, 240)
    outside = torch.ones(224, 240, dtype=torch.bool)
    outside[100:124, 100:140] = False
    assert (sample["mask"][outside] == 255).all()


def test_grid_sampler_covers_the_frames_and_loads_in_batches(make_dataset):
    dataset = HSS(make_dataset(4, size=(32, 48)).root, split=None)
    sampler = grid_patches(dataset, size_px=16, stride_px=16)
    loader = DataLoader(
        dataset,
        batch_size=4,
        sampler=sampler,
        collate_fn=lambda samples: stack_samples([tensors_only(s) for s in samples]),
    )
    batches = list(loader)
    assert sum(len(batch["image"]) for batch in batches) == 4 * 2 * 3
    assert batches[0]["image"].shape[1:] == (25, 16, 16)


def test_unions_and_intersections_are_torchgeo_datasets(make_dataset):
    root = make_dataset(10).root
    train, val = HSS(root, "train"), HSS(root, "val")
    assert len(train | val) == 8
    assert len(train & HSS(root, "train")) == 6
    query = next(frame_slices(val))
    assert torch.equal((train | val)[query]["image"], val[query]["image"])
    both = (train & HSS(root, "train"))[next(frame_slices(train))]
    assert both["image"].shape[0] == 50


def test_splits_are_disjoint_and_complete(make_dataset):
    root = make_dataset(10).root
    ids = [{r.id for r in HSS(root, split).records} for split in ("train", "val", "test")]
    assert [len(part) for part in ids] == [6, 2, 2]
    assert len(set.union(*ids)) == 10


def test_unshipped_splits_are_seeded_and_can_keep_scenes_together(make_dataset):
    root = make_dataset(12, ship_splits=False).root

    def ids(split, **kwargs):
        return {record.id for record in HSS(root, split, **kwargs).records}

    assert ids("train") == ids("train")
    assert ids("train") != ids("train", seed=5)
    scenes = [
        {record.scene for record in HSS(root, split, by_scene=True).records}
        for split in ("train", "val", "test")
    ]
    assert sum(len(part) for part in scenes) == len(set.union(*scenes)) == 4


def test_shipped_splits_that_tear_scenes_apart_are_kept_but_told(make_dataset, caplog):
    layout = make_dataset(12)
    ids = [record.id for record in layout.frames]
    for number, name in enumerate(("train", "val", "test")):
        (layout.root / "splits" / f"{name}.txt").write_text("\n".join(ids[number::3]))
    HSS(layout.root, "train")
    assert not caplog.messages
    HSS(layout.root, "train", by_scene=True)
    (told,) = caplog.messages
    assert "4 of 4 scenes of train are in another one" in told
    assert "--split-by scene" in told


def test_shipped_splits_that_keep_scenes_together_need_no_word(make_dataset, caplog):
    layout = make_dataset(12)
    scenes = sorted({record.scene for record in layout.frames})
    for number, name in enumerate(("train", "val", "test")):
        ids = [r.id for r in layout.frames if scenes.index(r.scene) % 3 == number]
        (layout.root / "splits" / f"{name}.txt").write_text("\n".join(ids))
    HSS(layout.root, "train", by_scene=True)
    assert not caplog.messages


def test_a_split_without_frames_is_refused_and_the_others_named(make_dataset):
    layout = make_dataset(10)
    (layout.root / "splits" / "val.txt").write_text("")
    with pytest.raises(InputError, match=r"no frames of val, only train, test\. Make the dataset"):
        HSS(layout.root, "val")
    few = make_dataset(2, name="two", ship_splits=False)
    with pytest.raises(InputError, match=r"2 frames leave the test split empty\. Add frames"):
        HSS(few.root, "test")


def test_overlapping_shipped_splits_are_refused(make_dataset):
    layout = make_dataset(10)
    train = (layout.root / "splits" / "train.txt").read_text()
    (layout.root / "splits" / "val.txt").write_text(train)
    with pytest.raises(InputError, match="in both splits"):
        HSS(layout.root)


def test_chosen_bands_come_in_the_order_asked(make_dataset):
    root = make_dataset().root
    dataset = HSS(root, bands=["974nm", "600nm"])
    sample = dataset[next(frame_slices(dataset))]
    frame = random_frame(number_of(dataset, sample))
    assert np.array_equal(sample["image"].numpy(), frame.cube.values[[24, 0]])
    assert dataset.band_set.wavelengths_nm == (974, 600)
    with pytest.raises(UsageError, match="no band 'blue'"):
        HSS(root, bands=["blue"])


def test_an_orthophoto_keeps_its_place_and_its_pixels(tmp_path):
    bands = sensor("satellite").bands
    rng = np.random.default_rng(0)
    values = rng.integers(0, 10000, (6, 20, 30)).astype(np.uint16)
    place = {"crs": rasterio.crs.CRS.from_epsg(32720), "transform": from_origin(5e5, 9e6, 10, 10)}
    frame = Frame("ortho", make_cube(values, bands, **place), np.zeros((20, 30), np.uint8))
    record = write_frame(tmp_path, frame, 0)
    finish_layout(tmp_path, "satellite", bands, [record], {"train": ["ortho"]})
    dataset = Satellite(tmp_path)
    assert dataset.crs.to_epsg() == 32720
    sample = dataset[slice(5e5, 5e5 + 300), slice(9e6 - 200, 9e6)]
    assert np.array_equal(sample["image"].numpy(), values)


def test_pixels_without_value_are_ignored_not_learnt(tmp_path):
    bands = sensor("mss").bands
    values = np.ones((4, 8, 8), np.float32)
    values[1, 2, 3] = np.nan
    record = write_frame(tmp_path, Frame("a", make_cube(values, bands), np.ones((8, 8), "u1")), 0)
    finish_layout(tmp_path, "mss", bands, [record], {"train": ["a"]})
    dataset = MSS(tmp_path)
    sample = dataset[next(frame_slices(dataset))]
    assert torch.isfinite(sample["image"]).all()
    assert sample["mask"][2, 3] == 255
    assert (sample["mask"] == 1).sum() == 63


def test_scenario_tags_belong_to_frames(make_dataset):
    dataset = HSS(make_dataset().root)
    sample = dataset[next(frame_slices(dataset))]
    assert dataset.scenarios(int(sample["frame"])) == ("cloud_interference", "early_stage")


def test_transforms_see_the_finished_sample(make_dataset):
    seen = {}
    dataset = HSS(make_dataset().root, transforms=lambda sample: seen.update(sample) or sample)
    _ = dataset[next(frame_slices(dataset))]
    assert {"image", "mask", "frame"} <= set(seen)


def test_plot_shows_image_and_mask(make_dataset):
    dataset = HSS(make_dataset().root)
    figure = dataset.plot(dataset[next(frame_slices(dataset))], suptitle="hello")
    assert [axis.get_title() for axis in figure.axes] == ["image", "mask"]


def test_the_wrong_kind_and_an_empty_folder_are_refused_with_a_remedy(make_dataset, tmp_path):
    with pytest.raises(InputError, match="holds a hss dataset, not mss"):
        MSS(make_dataset().root)
    with pytest.raises(InputError, match=r"prepare mss .*--download.*simulate mss --out"):
        MSS(tmp_path)


def test_damaged_samples_are_all_named_before_training(make_dataset):
    layout = make_dataset(10)
    first, second, third = layout.split_ids("train")[:3]
    layout.mask(first).unlink()
    layout.image(second).write_bytes(b"not a tiff")
    layout.image(third).unlink()
    with pytest.raises(InputError) as caught:
        HSS(layout.root)
    text = str(caught.value)
    assert "3 of 6 samples unusable" in text
    assert all(name in text for name in (first, second, third))
    assert "\n" not in text


def write_places(root, corners, *, size=64):
    """Write frames of one value each, 10 m a pixel; the odd ones are smoke, but for four rows."""
    bands, records = sensor("satellite").bands, []
    for number, (right, down) in enumerate(corners):
        values = np.full((6, size, size), 1000 * (number + 1), np.uint16)
        mask = np.full((size, size), number % 2, np.uint8)
        mask[:4] = 255
        place = {
            "crs": rasterio.crs.CRS.from_epsg(32633),
            "transform": from_origin(5e5 + 10 * right, 5e6 - 10 * down, 10, 10),
        }
        frame = Frame(f"frame_{number}", make_cube(values, bands, **place), mask)
        records.append(write_frame(root, frame, number))
    ids = [record.id for record in records]
    finish_layout(root, "satellite", bands, records, {"train": ids})
    return Satellite(root)


def times(dataset):
    """Return the query of each frame with its time, as TorchGeo's samplers make them."""
    for (x, y, *_), time in zip(frame_slices(dataset), dataset.index.index, strict=True):
        yield x, y, slice(time.left, time.right)


@pytest.mark.parametrize(
    "corners",
    [
        [(0, 0), (64, 0), (0, 64), (64, 64)],
        [(0, 0), (32, 0), (16, 16)],
        [(0, 0), (0, 0), (0, 0), (64, 0)],
    ],
    ids=["adjacent", "overlapping", "at the same place"],
)
@pytest.mark.parametrize("patch_px", [None, 64, 60])
def test_frames_that_meet_keep_their_own_pixels_labels_and_numbers(tmp_path, corners, patch_px):
    dataset = write_places(tmp_path, corners)
    queries = times(dataset) if patch_px is None else grid_patches(dataset, patch_px, patch_px)
    if NEW_SAMPLES and patch_px is not None and len(set(corners)) < len(corners):
        # TorchGeo 0.10 makes patches without the time of a frame: refused, not guessed.
        with pytest.raises(InputError, match="3 frames lie at the same place"):
            _ = [dataset[query] for query in queries]
        return
    seen = set()
    for query in queries:
        sample = dataset[query]
        number = number_of(dataset, sample)
        seen.add(number)
        inside = sample["mask"] != 255
        assert set(sample["mask"][inside].tolist()) <= {number % 2}
        assert set(sample["image"][:, inside].flatten().tolist()) <= {1000.0 * (number + 1)}
        if patch_px is None:
            assert int(inside.sum()) == 60 * 64
    assert seen == set(range(len(corners)))


def test_a_query_that_does_not_say_which_frame_of_a_series_is_refused(tmp_path):
    dataset = write_places(tmp_path, [(0, 0), (0, 0)])
    x, y, *_ = next(frame_slices(dataset))
    with pytest.raises(InputError, match=r"2 frames lie at the same place \(frame_0, frame_1\)"):
        _ = dataset[x, y]


def test_a_place_where_no_frame_lies_is_no_part_of_the_dataset(tmp_path):
    dataset = write_places(tmp_path, [(0, 0)])
    with pytest.raises(IndexError):
        _ = dataset[slice(4e5, 4e5 + 640), slice(5e6 - 640, 5e6)]
