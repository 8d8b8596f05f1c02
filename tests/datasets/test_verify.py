"""Every fault of a dataset is found, and all of them at once."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio

from smokegeo.datasets.verify import Fault, describe_faults, find_faults


def rewrite(path, change):
    """Read a raster, change its (values, profile), write it back."""
    with rasterio.open(path) as src:
        values, profile = change(src.read(), dict(src.profile))
    with rasterio.open(path, "w", **profile) as dst:
        dst.write(values)


def fewer_bands(values, profile):
    return values[:24], {**profile, "count": 24}


def smaller(values, profile):
    return values[:, :-1], {**profile, "height": profile["height"] - 1}


def odd_values(values, profile):
    values[0, 0, :3] = 7
    return values, profile


def not_a_number(values, profile):
    values = values.astype(np.float32)
    values[4, 0, 0] = np.nan
    return values, {**profile, "dtype": "float32", "predictor": 3}


@pytest.mark.parametrize(
    ("where", "change", "kind"),
    [
        ("image", fewer_bands, "wrong band count"),
        ("mask", smaller, "mask size or place differs"),
        ("mask", odd_values, "mask values"),
        ("image", not_a_number, "NaN or infinite"),
    ],
)
def test_each_fault_is_named(make_dataset, where, change, kind):
    layout = make_dataset(3, ship_splits=False)
    rewrite(getattr(layout, where)("frame_001"), change)
    faults = [f for f in find_faults(layout, deep=True) if f.kind != "checksum differs"]
    assert [(f.sample, f.kind) for f in faults] == [("frame_001", kind)]


def test_a_truncated_image_is_found_by_the_deep_check(make_dataset):
    layout = make_dataset(3, ship_splits=False)
    path = layout.image("frame_002")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    kinds = {(f.sample, f.kind) for f in find_faults(layout, deep=True)}
    assert ("frame_002", "unreadable") in kinds


def test_changed_missing_and_stray_files_are_found(make_dataset):
    layout = make_dataset(3, ship_splits=False)
    table = layout.root / "frames.csv"
    table.write_text(table.read_text() + "\n")
    layout.mask("frame_000").unlink()
    layout.image("extra").write_bytes(layout.image("frame_001").read_bytes())
    kinds = {(f.sample, f.kind) for f in find_faults(layout, deep=True)}
    assert kinds == {
        ("frames.csv", "checksum differs"),
        ("masks/frame_000.tif", "missing file"),
        ("frame_000", "no mask"),
        ("extra", "not in frames.csv"),
    }


def test_a_sound_dataset_has_no_faults(make_dataset):
    assert find_faults(make_dataset(3), deep=True) == []


def test_faults_are_described_in_one_line_grouped_by_kind():
    faults = [Fault("a", "no mask"), Fault("b", "no mask"), Fault("c", "mask values", "0, 7")]
    assert describe_faults(faults, 9) == (
        "3 of 9 samples unusable: no mask: a, b; mask values: c (0, 7). Mend or remove them."
    )
