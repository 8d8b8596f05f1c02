"""Band statistics: right numbers, computed once."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio
from random_data import random_frame

from smokegeo.datasets import statistics as module
from smokegeo.datasets.statistics import BandStatistics, band_statistics
from smokegeo.errors import InputError


def test_numbers_equal_numpys_over_all_pixels(make_dataset):
    layout = make_dataset(5)
    ids = layout.split_ids("train")
    got = band_statistics(layout, ids, layout.bands)
    stack = np.concatenate(
        [
            random_frame(int(i.removeprefix("frame_"))).cube.values.reshape(25, -1).astype(float)
            for i in ids
        ],
        axis=1,
    )
    assert np.allclose(got.mean, stack.mean(axis=1))
    assert np.allclose(got.std, stack.std(axis=1))
    assert np.allclose(got.minimum, stack.min(axis=1))
    assert np.allclose(got.maximum, stack.max(axis=1))
    assert got.pixels == stack.shape[1]


def test_they_are_computed_once_per_split_and_bands(make_dataset, monkeypatch):
    layout = make_dataset(5)
    ids = layout.split_ids("train")
    first = band_statistics(layout, ids, layout.bands)
    monkeypatch.setattr(module, "compute_statistics", lambda *_: pytest.fail("computed again"))
    assert band_statistics(layout, ids, layout.bands) == first
    with pytest.raises(pytest.fail.Exception, match="computed again"):
        band_statistics(layout, ids, layout.bands.subset(["600nm"]))


def test_changed_data_without_checksums_never_meet_old_numbers(make_dataset, monkeypatch):
    layout = make_dataset(5)
    (layout.root / "checksums.sha256").unlink()
    ids = layout.split_ids("train")
    first = band_statistics(layout, ids, layout.bands)
    with monkeypatch.context() as patch:
        patch.setattr(module, "compute_statistics", lambda *_: pytest.fail("computed again"))
        assert band_statistics(layout, ids, layout.bands) == first
    with rasterio.open(layout.image(ids[0]), "r+") as dst:
        dst.write(dst.read() // 4)
    assert band_statistics(layout, ids, layout.bands).mean != first.mean


def test_a_damaged_cache_is_computed_again(make_dataset):
    layout = make_dataset(5)
    ids = layout.split_ids("train")
    first = band_statistics(layout, ids, layout.bands)
    (cache,) = (layout.root / "statistics").glob("*.json")
    cache.write_text("{}")
    assert band_statistics(layout, ids, layout.bands) == first


def test_invalid_pixels_do_not_count(make_dataset):
    layout = make_dataset(1, ship_splits=False)
    (record,) = layout.frames
    with rasterio.open(layout.image(record.id), "r+") as dst:
        values = dst.read()
        values[:, :12] = 0
        values[3, 20, 20] = 0
        dst.write(values)
        dst.nodata = 0
    got = band_statistics(layout, [record.id], layout.bands)
    valid = (values != 0).all(axis=0)
    assert got.pixels == valid.sum()
    assert np.allclose(got.mean, values[:, valid].mean(axis=1))


def test_ignored_pixels_without_data_do_not_count_but_dark_ones_do(make_dataset):
    layout = make_dataset(1, ship_splits=False)
    (record,) = layout.frames
    with (
        rasterio.open(layout.image(record.id), "r+") as image,
        rasterio.open(layout.mask(record.id), "r+") as mask,
    ):
        values, labels = image.read(), mask.read()
        values[:, 2:9] = 0
        values[7, 5] = 1
        labels[:, 4:12] = 255
        image.write(values)
        mask.write(labels)
    empty = (values == 0).all(axis=0) & (labels[0] == 255)
    assert empty.sum() == 4 * 40
    for bands in (layout.bands, layout.bands.subset(["600nm"])):
        got = band_statistics(layout, [record.id], bands)
        assert got.pixels == (~empty).sum()
    assert np.allclose(got.mean[0], values[0][~empty].mean())


def test_a_split_without_valid_pixels_is_refused(make_dataset):
    layout = make_dataset(1, ship_splits=False)
    (record,) = layout.frames
    with rasterio.open(layout.image(record.id), "r+") as dst:
        dst.write(np.zeros_like(dst.read()))
        dst.nodata = 0
    with pytest.raises(InputError, match=r"no valid pixel.*\. Add frames with data"):
        band_statistics(layout, [record.id], layout.bands)


def test_they_survive_json(make_dataset):
    layout = make_dataset(5)
    got = band_statistics(layout, layout.split_ids("train"), layout.bands)
    assert BandStatistics.from_dict(got.to_dict()) == got
