"""The default models: their samples, their training, and the files that ship."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rasterio
import torch
from toy_models import save_toy

from smokegeo.metrics import count
from smokegeo.modelfile import bundled_models, load_model, read_card

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "datasets" / "satellite" / "sample"
KINDS = ("hss", "mss", "satellite")


@pytest.fixture(scope="module")
def scripts():
    """The scripts import each other as a user's shell would run them."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import default_backgrounds
    import default_common
    import default_finish
    import default_judges
    import default_kinds
    import default_photos
    import default_satellite
    import evaluate_default
    import train_default

    yield argparse.Namespace(
        kinds=default_kinds,
        train=train_default,
        evaluate=evaluate_default,
        finish=default_finish,
        photos=default_photos,
        judges=default_judges,
        satellite=default_satellite,
        common=default_common,
        backgrounds=default_backgrounds,
    )
    sys.path.remove(str(ROOT / "scripts"))


def make(scripts, name, number, seed=3, easy=False):
    return scripts.kinds.KINDS[name].make(number, seed, (), 64, easy)


# Samples


@pytest.mark.parametrize("name", KINDS)
def test_a_sample_is_the_same_every_time_and_unlike_the_next(scripts, name):
    first, again, other = (make(scripts, name, n) for n in (5, 5, 6))
    np.testing.assert_array_equal(first.values, again.values)
    np.testing.assert_array_equal(first.target, again.target)
    assert not np.array_equal(first.values, other.values)


@pytest.mark.parametrize("name", KINDS)
def test_labels_are_background_smoke_and_unknown(scripts, name):
    samples = [make(scripts, name, number) for number in range(12)]
    assert set(np.unique([s.target for s in samples])) == {0, 1, 255}
    assert all(s.has.sum() >= 2 and np.isfinite(s.values[s.has]).all() for s in samples)


def test_satellite_samples_come_with_fewer_bands_and_as_pictures_but_not_at_first(scripts):
    hard = [make(scripts, "satellite", n) for n in range(40)]
    assert len({tuple(s.has) for s in hard}) > 3
    assert {bool(s.trusted.all()) for s in hard} == {True, False}
    easy = [make(scripts, "satellite", n, easy=True) for n in range(40)]
    assert all(s.trusted.all() for s in easy)
    assert np.mean([s.has.all() for s in easy]) > 0.6


def a_background(scripts, spectrum, name="x"):
    source = scripts.backgrounds.SOURCES[1]
    light = np.array(spectrum, np.float16)[:, None, None] * np.ones((6, 96, 96), np.float16)
    labels = np.full((96, 96), scripts.backgrounds.UNKNOWN, np.uint8)
    return scripts.backgrounds.Background(name, source, light, labels, False)


FOREST = (0.04, 0.05, 0.03, 0.33, 0.17, 0.08)
WHITE_CLOUD = (0.6, 0.6, 0.6, 0.6, 0.4, 0.3)


def test_forests_are_found_among_the_backgrounds(scripts):
    forest, cloud = (a_background(scripts, light) for light in (FOREST, WHITE_CLOUD))
    assert forest.green
    assert not cloud.green
    rng = np.random.default_rng(0)
    choose = scripts.backgrounds.choose_background
    assert all(choose([cloud, forest], rng, wooded=True) is forest for _ in range(10))
    assert {choose([cloud, forest], rng, wooded=False) is forest for _ in range(20)} == {
        True,
        False,
    }
    assert choose([cloud], rng, wooded=True) is cloud  # there is no other


def test_smoke_before_cloud_is_left_open_even_where_no_label_tells_of_the_cloud(scripts):
    def labels(spectrum):
        have = [a_background(scripts, spectrum)]
        made = [
            scripts.satellite.satellite_sample(n, 3, have, 64, real_share=1.0) for n in range(25)
        ]
        return np.concatenate([s.target.ravel() for s in made])

    assert (labels(FOREST) == 1).mean() > 0.05
    # What was painted into the cloud, dark enough to see smoke before, may be labelled.
    assert (labels(WHITE_CLOUD) == 1).mean() < 0.2 * (labels(FOREST) == 1).mean()


def test_smoke_of_fires_hides_little_in_short_wave_infrared(scripts):
    rng = np.random.default_rng(0)
    drawn = [scripts.satellite._particles(rng) for _ in range(200)]
    ratios = [p.depth_factor(2200) / p.depth_factor(665) for p in drawn]
    assert np.median(ratios) < 0.25


def test_smoke_seen_from_nearer_is_the_same_smoke_but_larger(scripts):
    from smokegeo.simulate.optics import Layer

    rng = np.random.default_rng(0)
    tau = np.zeros((64, 64), np.float32)
    tau[30:36, 30:36] = 1.0
    particles, stage = make_particles(), a_stage(64, burning=tau)
    seen, near = scripts.common.closer(stage, Layer(tau, np.ones_like(tau), particles), rng)
    assert near.tau.shape == tau.shape
    assert (near.tau > 0.5).sum() > (tau > 0.5).sum()
    assert_burns_below(seen, near.tau)
    nothing = Layer(np.zeros_like(tau), np.ones_like(tau), particles)
    assert scripts.common.closer(stage, nothing, rng) == (stage, nothing)


def a_stage(size, burning):
    """A satellite's view with a fire where `burning` says."""
    from dataclasses import replace

    from smokegeo.sensors import sensor
    from smokegeo.simulate.stage import build_stage

    rng = np.random.default_rng(0)
    bands = sensor("satellite").bands
    stage = build_stage("satellite", (size, size), bands, "complex_background", rng)
    fire = replace(stage.scenery.fire, flame=burning, scar=burning, ember_k=90 * burning)
    return replace(stage, scenery=replace(stage.scenery, fire=fire))


def assert_burns_below(stage, tau):
    fire = stage.scenery.fire
    for field in (fire.flame, fire.scar, fire.ember_k):
        assert field.max() > 0.2
        assert (tau[field > 0.6 * field.max()] > 0).mean() > 0.9


def test_smoke_seen_from_far_away_is_smaller_and_rises_from_the_ground(scripts):
    from smokegeo.simulate.optics import Layer

    tau = np.zeros((128, 128), np.float32)
    tau[32:96, 32:96] = 1.0
    layer = Layer(tau, np.ones((1, 1), np.float32), make_particles())
    stage = a_stage(128, burning=tau)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        seen, layer_seen = scripts.common.farther(stage, layer, rng, ground=(60, 70))
        far = layer_seen.tau
        assert_burns_below(seen, far)
        assert far.shape == tau.shape
        assert 0 < (far > 0.5).sum() < 3 * (tau > 0.5).sum() / 2  # up to three of them
        foot = np.flatnonzero((far > 0.1).any(axis=1))[-1]
        assert foot <= 71


def test_labels_are_patches_without_the_holes_of_pixels(scripts):
    rng = np.random.default_rng(0)
    opacity = np.zeros((64, 64), np.float32)
    opacity[16:48, 16:48] = 0.4
    change = opacity * (rng.random((64, 64)) < 0.5).astype(np.float32)  # every other pixel
    smooth = np.full((64, 64), 0.2, np.float32)
    target = scripts.common.label(opacity, change, smooth)
    assert (target[20:44, 20:44] == 1).all()
    assert (target[:8] == 0).all()


def test_faint_smoke_among_clouds_is_left_open(scripts):
    opacity = np.full((64, 64), 0.2, np.float32)
    change = np.full((64, 64), 0.03, np.float32)
    clouds = (np.random.default_rng(0).random((64, 64)) < 0.5).astype(np.float32)
    open_land = np.full((64, 64), 0.2, np.float32)
    assert (scripts.common.label(opacity, change, open_land) == 1).all()
    assert (scripts.common.label(opacity, change, clouds) == scripts.common.IGNORED).all()


def test_a_veil_is_labelled_over_forest_and_left_open_over_bright_sand(scripts):
    opacity = np.full((64, 64), 0.3, np.float32)
    change = np.full((64, 64), 0.05, np.float32)
    forest, sand = (np.full((64, 64), light, np.float32) for light in (0.1, 0.35))
    label = scripts.common.label
    assert (label(opacity, change, forest, everywhere=True) == 1).all()
    assert (label(opacity, change, sand, everywhere=True) == scripts.common.IGNORED).all()
    assert (label(opacity, change, sand) == 1).all()  # a plume has an edge to know it by


def test_smoke_is_looked_for_in_the_bands_of_light_that_a_file_has(scripts):
    def seen(*has):
        judged = scripts.satellite.looked_at(np.array(has, bool))
        return [band.name for band in scripts.satellite.BANDS if judged(band)]

    assert seen(1, 1, 1, 1, 1, 1) == ["blue", "green", "red", "nir"]
    assert seen(0, 0, 1, 0, 1, 1) == ["red"]
    assert seen(0, 0, 0, 0, 1, 1) == ["swir1", "swir2"]


def test_bands_are_left_out_only_so_far_that_smoke_can_still_be_known(scripts):
    rng = np.random.default_rng(0)
    for has in ([1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0]):
        for _ in range(200):
            kept = scripts.satellite.choose_bands(np.array(has, bool), rng)
            assert not (kept & ~np.array(has, bool)).any()
            assert kept[:3].sum() >= 2 or (kept[:4].any() and kept[4:].any())


def test_the_ground_is_never_clipped_in_reflectances_at_one_value_of_all_bands(scripts):
    forest = [a_background(scripts, FOREST)]
    made = [scripts.satellite.satellite_sample(n, 3, forest, 48, real_share=1.0) for n in range(60)]
    measured = [s for s in made if s.trusted.all() and s.has[2:4].all() and s.tag == "real none"]
    assert measured
    for sample in measured:
        red, nir = (np.median(sample.values[i]) for i in (2, 3))
        assert nir > 1.2 * red or red > 0.1  # forest, or a sky all over it


def test_fires_are_seen_in_some_samples_only(scripts):
    rng, stage = np.random.default_rng(0), a_stage(32, np.ones((32, 32), np.float32))
    left = [scripts.common.without_fire(stage, 0.4, rng).scenery.fire is None for _ in range(200)]
    assert 0.3 < np.mean(left) < 0.5


def test_a_thick_plume_casts_a_shadow_away_from_the_sun(scripts):
    from dataclasses import replace

    from smokegeo.simulate.optics import Layer

    tau = np.zeros((64, 64), np.float32)
    tau[28:36, 28:36] = 5.0
    layer = Layer(tau, np.ones_like(tau), make_particles())
    stage = replace(a_stage(64, burning=tau), sun=(0.0, 1.0), sunlit=None)
    dark = [
        scripts.satellite._shaded(stage, layer, np.random.default_rng(seed)).sunlit
        for seed in range(8)
    ]
    assert min(d.min() for d in dark) < 0.5
    assert min(d[:, 40:].min() for d in dark) > 0.99  # the sun is on the right
    assert min(d[32, 24:28].min() for d in dark) < 0.6


def test_thin_smoke_is_dimmer_than_thick(scripts):
    from smokegeo.simulate.optics import Layer

    tau = np.array([[0.05, 8.0]], np.float32)
    for seed in range(10):
        layer = Layer(tau, np.ones_like(tau), make_particles())
        thin, thick = scripts.common.dim_where_thin(layer, np.random.default_rng(seed)).light[0]
        assert 0.3 < thin < 0.95 < thick <= 1


def test_sharpened_smoke_keeps_its_core_and_loses_its_rim(scripts):
    from smokegeo.simulate.optics import Layer

    tau = np.array([[0.0, 0.001, 4.0]], np.float32)
    layer = Layer(tau, np.ones_like(tau), make_particles())
    sharp = scripts.common.sharpened(layer, np.random.default_rng(0)).tau
    assert sharp.tolist() == [[0.0, 0.0, 4.0]]
    nothing = Layer(np.zeros_like(tau), np.ones_like(tau), make_particles())
    assert not scripts.common.sharpened(nothing, np.random.default_rng(0)).tau.any()


def test_pictures_are_stretched_by_their_own_range_or_by_one_that_clips_clouds(scripts):
    rng = np.random.default_rng(0)
    dim = rng.uniform(0.02, 0.1, (6, 32, 32)).astype(np.float32)
    dim[:, :2], dim[:, 2:4] = 0.9, 0.6  # cloud, thick and less so
    has, valid = np.array([True] * 3 + [False] * 3), np.ones((32, 32), bool)
    made = [scripts.common.stretched(dim, valid, has, np.random.default_rng(n)) for n in range(60)]
    assert all(picture.min() >= 0 and picture.max() <= 1 for picture in made)
    assert all(picture.shape == dim.shape for picture in made)
    alike = [abs(picture[:3, :2].mean() - picture[:3, 2:4].mean()) < 0.05 for picture in made]
    assert 0.2 < np.mean(alike) < 0.7


def test_the_scene_around_a_sample_changes_how_it_looks_in_relation(scripts):
    mean, std = np.full(6, 1000, np.float32), np.full(6, 100, np.float32)
    rest = [
        scripts.kinds._with_the_rest(mean, std, np.random.default_rng(seed)) for seed in range(40)
    ]
    spreads = np.array([s[0] for _, s in rest])
    assert spreads.min() < 110
    assert spreads.max() > 250  # far from the rest, all of a sample looks alike
    assert all(np.isfinite(m).all() and (m > 0).all() for m, _ in rest)


def test_a_stretched_picture_is_never_labelled_smoke_all_over(scripts):
    forest = [a_background(scripts, FOREST)]
    made = [scripts.satellite.satellite_sample(n, 3, forest, 48, real_share=1.0) for n in range(60)]
    veiled = [s for s in made if s.tag.endswith(("veil", "pall"))]
    over = [s for s in veiled if (s.target == 1).sum() > 0.8 * max(1, (s.target != 255).sum())]
    assert over
    assert all(s.trusted.all() for s in over)
    assert any(not s.trusted.any() for s in veiled)


def test_a_picture_of_8_bits_stays_one_where_parts_of_it_are_blank(scripts):
    sample = make(scripts, "satellite", 4)
    values = np.clip(sample.values[:3] * (255 / 10_000), 1, 250).astype(np.uint8)
    everywhere, cut = np.ones((64, 64), bool), np.ones((64, 64), bool)
    cut[:3, :3] = False
    judge = scripts.judges.network_judge(bundled_models()["satellite"])
    seen = [
        judge(scripts.judges.Picture("x", values, ("blue", "green", "red"), valid, sample.target))
        for valid in (everywhere, cut)
    ]
    assert np.abs(seen[0] - seen[1])[cut].mean() < 0.02


def make_particles():
    from smokegeo.simulate.optics import draw_smoke

    return draw_smoke(np.random.default_rng(1))


def test_smoke_of_a_few_pixels_is_left_open(scripts):
    common = scripts.common
    target = np.zeros((40, 40), np.uint8)
    target[2:4, 2:5] = target[20:26, 20:26] = 1
    left = common.without_specks(target)
    assert (left[2:4, 2:5] == common.IGNORED).all()
    assert (left[20:26, 20:26] == 1).all()
    assert ((left == 0) == (target == 0)).all()


def test_what_is_left_of_smoke_that_cannot_be_seen_is_left_open(scripts):
    common = scripts.common
    opacity, target = np.zeros((40, 40), np.float32), np.zeros((40, 40), np.uint8)
    opacity[2:18, 2:18] = opacity[22:38, 2:18] = 0.5
    target[opacity > 0] = common.IGNORED
    target[2:6, 2:17], target[22:30, 2:18] = 1, 1  # 60 and 128 of 256 pixels
    left = common.without_remnants(target, opacity)
    assert not (left[:20] == 1).any()
    assert (left[20:] == target[20:]).all()
    assert ((left == 0) == (target == 0)).all()


def test_images_of_one_site_are_all_for_training_or_all_for_judging(scripts):
    judged = scripts.backgrounds.is_for_judging
    for start in range(0, 100, 5):
        group = {judged(f"cs12_{n:03d}.tif", "clouds_cloudsen12") for n in range(start, start + 5)}
        assert len(group) == 1
    assert judged("S2_18-9-20_16PDC_16.tif", "coast_marida")
    assert not judged("S2_18-9-20_16PCC_49.tif", "coast_marida")


def test_photographs_of_one_camera_share_a_fold(scripts):
    camera = scripts.photos
    nothing = np.zeros((3, 2, 2), np.uint8)
    photos = [
        camera.Photo(f"201908{day}_FIRE_hill{n}-e-mobo-c__15{day}", nothing, nothing[0])
        for n in range(7)
        for day in (12, 13, 14)
    ]
    folds = {p.name: camera.fold_of(p, photos) for p in photos}
    for n in range(7):
        assert len({fold for name, fold in folds.items() if f"hill{n}-" in name}) == 1
    assert set(folds.values()) == set(range(camera.FOLDS))
    left = camera.without_fold(photos, "2")
    assert left
    assert all(folds[p.name] != 2 for p in left)
    assert len(left) < len(photos)
    below = a_background(scripts, FOREST)
    assert camera.without_fold([*photos, below], "2") == [*left, below]
    assert camera.without_fold([*photos, below], "none") == [below]


def test_a_drone_also_looks_down_on_pictures_from_aircraft(scripts):
    below = a_background(scripts, FOREST)
    samples = [scripts.photos.mss_sample(n, 0, [below], 64) for n in range(40)]
    real = [s for s in samples if s.tag.startswith("real")]
    assert 8 < len(real) < 26
    assert all(s.values[:3].min() >= 0 and s.values[:3].max() <= 255 for s in real)
    assert {bool(s.has[3]) for s in real} == {True, False}
    assert any((s.target == 1).any() for s in real)


def test_below_a_drone_smoke_lies_over_everything_drifts_or_billows(scripts):
    below = a_background(scripts, FOREST)
    samples = [scripts.photos.mss_sample(n, 0, [below], 64) for n in range(80)]
    styles = [s.tag.split()[1] for s in samples if s.tag.startswith("real")]
    assert {"none", "pall", "drifting"} < set(styles)
    assert len({"core", "complex_shape", "high_transparency", "early_stage"} & set(styles)) > 1


def test_slopes_in_photographs_are_ground_for_smoke_where_they_hold_none(scripts):
    colours = np.full((3, 256, 256), 200, np.uint8)
    colours[:, 140:] = np.array([60, 120, 40], np.uint8)[:, None, None]
    labels = np.zeros((256, 256), np.uint8)
    photo = scripts.photos.Photo("a__b", colours, labels)
    for seed in range(10):
        ground = scripts.photos._slope(photo, 64, np.random.default_rng(seed))
        red, green, blue = (ground.reflectance[name] for name in ("red", "green", "blue"))
        assert (green > red).all()
        assert (red > blue).all()  # no sky
        assert ground.warmth_k().shape == ground.valid.shape == (64, 64)
    smoky = replace(photo, labels=np.ones_like(labels))
    assert scripts.photos._slope(smoky, 64, np.random.default_rng(0)) is None
    samples = [scripts.photos.mss_sample(n, 0, [photo], 64) for n in range(60)]
    assert {s.tag.split()[0] for s in samples} == {"photo", "made", "real"}


def test_photographs_keep_their_smoke_and_some_get_more(scripts):
    labels = np.zeros((256, 256), np.uint8)
    labels[120:136, 100:140] = 1
    colours = np.full((3, 256, 256), 90, np.uint8)
    colours[:, :128] = 180
    photo = scripts.photos.Photo("a__b", colours, labels)
    samples = [scripts.photos.mss_sample(n, 0, [photo], 128) for n in range(30)]
    photos = [s for s in samples if s.tag == "photo"]
    assert 10 < len(photos) < 26
    assert {bool(s.has[3]) for s in photos} == {True, False}  # some get a guess of their heat
    assert any((s.target == scripts.common.IGNORED).any() for s in photos)  # edges of the simulated
    for seed in range(5):
        rng, light = np.random.default_rng(seed), colours.astype(np.float32)
        _, target = scripts.photos._with_smoke(light, labels, (100.0, 160.0), 0, rng)
        assert (target[labels == 1] == 1).all()
    assert all(s.values[:3].min() >= 0 and s.values[:3].max() <= 255 for s in photos)


def test_clouds_are_drawn_into_the_sky_and_behind_the_smoke(scripts):
    dark = np.full((3, 128, 128), 60, np.float32)
    dark[:, :4] = 250  # so that it is known how bright white is
    labels = np.zeros((128, 128), np.uint8)
    labels[20:40, 50:70] = 1
    changed = np.zeros((128, 128))
    for seed in range(12):
        rng = np.random.default_rng(seed)
        after = scripts.photos._with_clouds(dark, labels, 70.0, rng)
        changed += np.abs(after - dark).max(axis=0) / 12
    assert changed[5:60].mean() > 10
    assert changed[70:].max() < 1e-3
    assert changed[22:38, 52:68].mean() < 0.1 * changed[5:60].mean()


def test_a_real_plume_keeps_its_contrast_in_another_photograph_or_stays_out(scripts):
    there = np.full((3, 128, 128), 90, np.uint8)
    smoke = np.zeros((128, 128), np.uint8)
    smoke[50:70, 40:80] = 1
    there[:, smoke == 1] = 140
    plume = scripts.photos.Photo("a__b", there, smoke)
    here, labels = np.full((3, 128, 128), 30, np.float32), np.zeros((128, 128), np.uint8)
    labels[120:, :20] = 1
    rng = np.random.default_rng(2)
    after, target = scripts.photos._with_plume_of(plume, 1.0, here, labels, (60.0, 90.0), rng)
    new = (target == 1) & (labels == 0)
    assert new.sum() == smoke.sum()
    assert 60 <= np.flatnonzero(new.any(axis=1))[-1] <= 90
    assert after[:, new].mean() == pytest.approx(80, abs=4)
    assert (after[:, target == 0] == 30).mean() > 0.97
    assert (labels == 1).sum() == 160
    for zoom, taken in ((0.1, labels), (3.0, labels), (1.0, np.ones_like(labels))):
        same, left = scripts.photos._with_plume_of(plume, zoom, here, taken, (60.0, 90.0), rng)
        assert same is here
        assert left is taken


# Training


def options(tmp_path, **changes):
    facts = {
        "name": "mss", "backgrounds": tmp_path, "row": "e", "start": None, "mix": None, "steps": 6,
        "until": None, "batch": 2, "lr": 1e-3, "seed": 0, "threads": 1, "workers": 1,
        "photos": "none",
    }  # fmt: skip
    return argparse.Namespace(**{**facts, **changes})


@pytest.fixture
def tiny(scripts, monkeypatch):
    """A small network and small samples, all else as it is."""
    from dataclasses import replace

    from smokegeo.models.mop import MoP

    monkeypatch.setattr(
        scripts.train, "build", lambda name, row: MoP(bands=8, band_groups=4, dim=16)
    )
    small = replace(scripts.kinds.KINDS["mss"], size_px=64, crop_px=32)
    monkeypatch.setitem(scripts.kinds.KINDS, "mss", small)
    return scripts.train


def test_routers_begin_even_and_are_turned_slowly(scripts):
    network = scripts.kinds.build("satellite")
    available = torch.ones(2, 12)
    available[1, :6] = 0  # of the second image three bands are absent
    _, beta = network.routing(torch.randn(2, 12, 32, 32), available)
    torch.testing.assert_close(beta[0], torch.full_like(beta[0], 1 / 6))
    torch.testing.assert_close(beta[1, 3:], torch.full_like(beta[1, 3:], 1 / 3))
    groups = scripts.train.optimiser_of(network, 1e-3).param_groups
    slow = {id(p) for group in groups if group["share"] < 0.1 for p in group["params"]}
    named = dict(network.named_parameters())
    assert {name for name, p in named.items() if id(p) in slow} == {
        f"{router}_router.{part}" for router in "pf" for part in ("weight", "bias")
    }
    assert sum(len(group["params"]) for group in groups) == len(named)
    scripts.train.optimiser_of(scripts.kinds.build("satellite", "bl"), 1e-3)  # has no routers


def test_norms_that_keep_their_statistics_see_a_crop_alone_as_among_others(scripts):
    torch.manual_seed(0)
    network, average = (scripts.kinds.build("satellite").train() for _ in range(2))
    with torch.no_grad():
        average(3 * torch.randn(4, 12, 64, 64) + 1)  # has seen something
    scripts.train.keep_statistics(network, average)
    norms = [m for m in network.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    theirs = [m for m in average.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    before = [norm.running_mean.clone() for norm in norms]
    for mean, other in zip(before, theirs, strict=True):
        torch.testing.assert_close(mean, other.running_mean)
    crops = torch.randn(4, 12, 64, 64)
    torch.testing.assert_close(network(crops)[:1], network(crops[:1]), atol=1e-4, rtol=1e-4)
    assert all(torch.equal(n.running_mean, m) for n, m in zip(norms, before, strict=True))
    assert all(norm.weight.requires_grad for norm in norms)  # scale and shift are learnt


@pytest.mark.slow
def test_a_training_that_was_interrupted_ends_as_if_it_had_not_been(tiny, tmp_path):
    for folder in ("whole", "parts"):
        (tmp_path / folder).mkdir()
    assert tiny.train(options(tmp_path), tmp_path / "whole") == 6
    assert tiny.train(options(tmp_path, until=3), tmp_path / "parts") == 3
    assert tiny.train(options(tmp_path), tmp_path / "parts") == 6
    whole, parts = (
        torch.load(tmp_path / folder / "last.ckpt", weights_only=True)["average"]
        for folder in ("whole", "parts")
    )
    for name, value in whole.items():
        torch.testing.assert_close(value, parts[name], rtol=1e-5, atol=1e-6)


def test_crops_without_any_label_leave_the_loss_a_number(scripts):
    torch.manual_seed(0)
    network = scripts.kinds.build("satellite")
    batch = (
        torch.randn(2, 12, 32, 32),
        torch.ones(2, 12, dtype=torch.bool),
        torch.full((2, 32, 32), 255, dtype=torch.uint8),
    )
    loss = scripts.train.one_step(network, scripts.train.optimiser_of(network, 1e-3), batch, 0, 0)
    assert np.isfinite(loss)
    assert all(bool(torch.isfinite(p).all()) for p in network.parameters())


def test_bands_used_alike_over_an_image_cost_nothing_whatever_its_pixels_choose(scripts):
    from smokegeo.models.mop import Routed

    def uneven(beta, present=None):
        done = Routed(torch.zeros(1, 2, 4, 4), beta=beta, present=present)
        return float(scripts.train.uneven(done))

    each = torch.zeros(1, 4, 2, 2)
    for band, (y, x) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
        each[0, band, y, x] = 1
    one = torch.zeros(1, 4, 2, 2)
    one[:, 2] = 1
    assert uneven(each) == pytest.approx(0, abs=1e-6)
    assert uneven(one) == pytest.approx(np.log(4), abs=1e-5)
    present = torch.tensor([[1.0, 0, 1, 0]])
    two = torch.zeros(1, 4, 2, 2)
    two[:, ::2] = 0.5
    assert uneven(two, present) == pytest.approx(0, abs=1e-6)
    assert float(scripts.train.uneven(Routed(torch.zeros(1, 2, 4, 4)))) == 0  # no router


def test_a_checkpoint_goes_on_with_its_own_options_only(tiny, tmp_path):
    def parts():
        network, average = tiny.build("mss", "e"), tiny.build("mss", "e")
        return network, average, tiny.optimiser_of(network, 1e-3)

    def go_on(**changes):
        return tiny.resume(tmp_path, *parts(), tiny.decisive(options(tmp_path, **changes)))

    assert go_on() == 0
    tiny.save(tmp_path, 3, *parts(), tiny.decisive(options(tmp_path)))
    assert go_on(steps=9, until=4, workers=2) == 3
    for change in ({"photos": "all"}, {"batch": 4}, {"lr": 1e-2}, {"row": "d"}, {"seed": 1}):
        with pytest.raises(SystemExit, match=next(iter(change))):
            go_on(**change)
    start = save_toy(tmp_path / "toy.safetensors")
    with pytest.raises(SystemExit, match=r"start None \(now [0-9a-f]{64}\).* another --label"):
        go_on(start=start)


def test_a_checkpoint_that_does_not_tell_its_options_goes_on(tiny, tmp_path):
    network, average = tiny.build("mss", "e"), tiny.build("mss", "e")
    optimiser = tiny.optimiser_of(network, 1e-3)
    tiny.save(tmp_path, 3, network, average, optimiser, {})
    state = torch.load(tmp_path / "last.ckpt", weights_only=True)
    del state["told"]
    torch.save(state, tmp_path / "last.ckpt")
    told = tiny.decisive(options(tmp_path, batch=5))
    assert tiny.resume(tmp_path, network, average, optimiser, told) == 3


def test_calibration_makes_the_head_say_how_often_it_is_right(scripts, capsys):
    from smokegeo.models.mop import MoP

    network = MoP(bands=4, dim=16).eval()
    x = torch.randn(1, 4, 32, 32, generator=torch.manual_seed(0))
    with torch.no_grad():
        background, smoke = network(x)[0]
    votes = (smoke - background).flatten().double()
    chance = torch.rand(len(votes), generator=torch.manual_seed(1), dtype=torch.float64)
    truth = (chance < torch.sigmoid(3 * votes - 1)).double()
    scripts.finish.calibrate(network, votes, truth)
    with torch.no_grad():
        background, smoke = network(x)[0]
    told = (smoke - background).flatten()
    assert float(torch.sigmoid(told).mean()) == pytest.approx(float(truth.mean()), abs=1e-3)


def test_votes_are_weighed_as_the_calibrated_network_with_its_looks_says(scripts, monkeypatch):
    finish, kind = scripts.finish, scripts.kinds.KINDS["satellite"]
    monkeypatch.setattr(finish, "JUDGED", 3)
    torch.manual_seed(0)
    network = scripts.kinds.build("satellite").eval()
    seen, looks = finish.look(kind, network, []), kind.looks
    assert {len(item.votes) for item in seen} == {len(looks.all)}
    votes, truth, empty = finish.weigh(seen, looks)
    assert votes.shape == truth.shape == empty.shape
    scale = finish.calibrate(network, votes, truth)
    again = finish.weigh(finish.look(kind, network, []), looks)  # by the head that was changed
    torch.testing.assert_close(finish.weigh(seen, looks, *scale)[0], again[0], atol=1e-4, rtol=1e-4)
    assert not torch.allclose(votes, again[0], atol=1e-2)
    most = finish.weigh(seen, replace(looks, margin=0.0))[0]
    assert bool((votes <= most + 1e-6).all())  # a closer look counts less


def test_the_threshold_is_chosen_by_what_the_calibrated_network_says(
    scripts, monkeypatch, tmp_path
):
    from smokegeo.modelfile import read_card
    from smokegeo.models.mop import MoP

    network = MoP(bands=8, dim=16)
    torch.save({"average": network.state_dict()}, tmp_path / "last.ckpt")
    judged = []

    def weigh(seen, looks, a=1.0, b=0.0):
        judged.append((a, b))
        votes = torch.tensor([-1.0, 2, 1, 1, -1])
        return votes.double(), torch.tensor([0.0, 1, 1, 0, 1]).double(), torch.zeros(5, dtype=bool)

    monkeypatch.setattr(scripts.finish, "build", lambda name, row: network)
    monkeypatch.setattr(scripts.finish, "backgrounds", lambda *_: [])
    monkeypatch.setattr(scripts.finish, "look", lambda *_: [])
    monkeypatch.setattr(scripts.finish, "weigh", weigh)
    monkeypatch.setattr(scripts.finish, "choose_threshold", lambda *_: (0.4, 0.9))
    args = options(tmp_path, provisional=None, few=None)
    path = scripts.finish.finish(args, tmp_path, 6, 12)
    assert read_card(path).threshold == 0.4
    assert judged[0] == (1.0, 0.0)
    assert judged[1] != judged[0]


def test_the_threshold_is_the_best_that_is_quiet_where_there_is_no_smoke(scripts):
    def logit(p):
        return torch.logit(torch.tensor(p, dtype=torch.float64))

    # Smoke at 0.5 and above; a sample without smoke in which a tenth of the pixels reach 0.62.
    votes = logit([0.52] * 50 + [0.9] * 50 + [0.1] * 100 + [0.62] * 10 + [0.05] * 90)
    truth = torch.tensor([1.0] * 100 + [0.0] * 200).double()
    empty = torch.tensor([False] * 200 + [True] * 100)
    level, f1 = scripts.finish.choose_threshold(votes, truth, empty, "lowest")
    assert 0.62 < level <= 0.9
    assert f1 == pytest.approx(2 * 50 / 150)
    level, f1 = scripts.finish.choose_threshold(votes, truth, torch.zeros_like(empty), "lowest")
    assert level <= 0.52
    assert f1 == pytest.approx(2 * 100 / 210)


def test_of_thresholds_about_as_good_a_kind_takes_the_highest_or_the_lowest(scripts):
    votes = torch.logit(
        torch.tensor([0.91] * 900 + [0.52] * 5 + [0.42] * 10 + [0.41] * 25 + [0.32] * 90).double()
    )
    truth = torch.tensor([1.0] * 915 + [0.0] * 115).double()
    empty = torch.zeros(1030, dtype=torch.bool)
    # F1 0.992 from 0.55 on, 0.995 at 0.5, 0.986 at 0.35 and 0.4, 0.94 at 0.3.
    level, f1 = scripts.finish.choose_threshold(votes, truth, empty, "lowest")
    assert level == 0.35
    assert f1 == pytest.approx(2 * 915 / (940 + 915))
    level, f1 = scripts.finish.choose_threshold(votes, truth, empty, "highest")
    assert level == 0.9
    assert f1 == pytest.approx(2 * 900 / (900 + 915))


def test_a_card_tells_the_command_it_was_made_by(scripts, tmp_path):
    plain = options(tmp_path, name="satellite", photos="all")
    told = "scripts/train_default.py satellite --steps 6 --batch 2 --lr 0.001 --seed 0"
    assert scripts.finish.command(plain) == told
    base = Path("work/base/model.safetensors")
    later = options(tmp_path, start=base, mix=base, photos="3", row="bl")
    assert scripts.finish.command(later).endswith(
        "--seed 0 --start base/model.safetensors --mix base/model.safetensors --row bl --photos 3"
    )


def test_a_mixed_model_is_the_mean_of_two(scripts):
    one, two = (torch.nn.BatchNorm1d(2) for _ in range(2))
    two.weight.data += 1
    two.num_batches_tracked += 7
    scripts.finish.mix(one, two.state_dict())
    assert one.weight.tolist() == [1.5, 1.5]
    assert int(one.num_batches_tracked) == 0


def test_crops_stay_inside_and_go_where_the_smoke_is(scripts):
    target = torch.zeros(256, 256, dtype=torch.uint8)
    target[200:216, 8:24] = 1
    rng = np.random.default_rng(0)
    parts = [scripts.train.crop(target, 128, rng) for _ in range(200)]
    assert all(target[part].shape == (128, 128) for part in parts)
    with_smoke = np.mean([bool((target[part] == 1).any()) for part in parts])
    assert with_smoke > 0.5  # by chance it would be a third


def test_a_camera_s_samples_are_never_turned(scripts):
    image = torch.arange(128.0)[None, :, None].expand(1, 128, 128)  # darker above
    item = (image.half(), torch.tensor([True]), torch.zeros(128, 128, dtype=torch.uint8))
    args = argparse.Namespace(seed=0, batch=8, steps=100)
    for name, turned in (("mss", False), ("satellite", True)):
        images, _, _ = scripts.train.draw(scripts.kinds.KINDS[name], [item] * 3, 1, args)
        upright = [(picture[0, 1:, 0] > picture[0, :-1, 0]).all() for picture in images]
        assert all(upright) is not turned


def test_every_other_step_of_the_satellite_model_shows_a_few_crops_enlarged(scripts):
    image = torch.rand(2, 256, 256, generator=torch.manual_seed(0)).half()
    target = (image[0] > 0.5).to(torch.uint8)
    item, kind = (image, torch.tensor([True, True]), target), scripts.kinds.KINDS["satellite"]
    args = argparse.Namespace(seed=0, batch=8, steps=1000)
    plain, enlarged = (scripts.train.draw(kind, [item] * 3, step, args) for step in (0, 1))
    assert plain[0].shape == (8, 2, 128, 128)
    assert enlarged[0].shape == (2, 2, 256, 256)
    for images, _, labels in (plain, enlarged):  # labels stay on what they are of
        assert labels.shape == images[:, 0].shape
        bright = images[:, 0][labels == 1].mean() - images[:, 0][labels == 0].mean()
        assert float(bright) > 0.2


# Judging


def test_outlines_that_touch_no_smoke_are_false(scripts):
    labels = np.zeros((40, 40), np.uint8)
    labels[5:10, 5:10], labels[30:35, 5:10] = 1, 255
    found = np.zeros((40, 40), bool)
    assert scripts.evaluate.outlines(found, labels) == (False, 0)
    found[8:14, 8:14] = found[30:36, 30:36] = True  # one beside the smoke, one far from it
    found[32:36, 8:12] = found[0, 38] = True  # where nobody knows; a speck
    assert scripts.evaluate.outlines(found, labels) == (True, 1)


def test_a_judge_that_remembers_draws_each_picture_once(scripts):
    from default_judges import Picture, remembered

    asked = []

    def judge(picture):
        asked.append(picture.bands)
        return np.full(picture.valid.shape, len(asked), np.float32)

    blank = np.ones((4, 4), bool)
    picture = Picture("a", np.zeros((2, 4, 4)), ("red", "nir"), blank, blank.astype(np.uint8))
    again = remembered(judge)
    assert (again(picture) == again(picture)).all()
    assert (again(picture.only(["red"])) == 2).all()
    assert asked == [("red", "nir"), ("red",)]


# The files that ship


@pytest.mark.parametrize("name", sorted(bundled_models()))
def test_a_bundled_model_is_small_and_says_where_it_comes_from(name):
    path = bundled_models()[name]
    card = read_card(path)
    assert path.stat().st_size <= 8e6
    assert card.name == name
    assert card.training["command"].startswith("scripts/train_default.py")
    assert card.training["threshold"]
    assert card.training["data"]["source"]
    assert card.licence
    assert card.summary
    assert (ROOT / "docs" / "models" / f"{name}.md").is_file()


@pytest.mark.parametrize("name", sorted(bundled_models()))
def test_a_bundled_model_is_the_same_network_folded_or_not(name):
    model = load_model(name)
    x = torch.randn(1, model.card.channels, 64, 64, generator=torch.manual_seed(0))
    with torch.inference_mode():
        whole, folded = model.network()(x), model.for_inference()(x, None)
    torch.testing.assert_close(whole.softmax(1), folded.softmax(1), atol=1e-3, rtol=0)


def test_the_sample_scene_s_plume_is_found_without_any_option(tmp_path):
    from smokegeo import predict

    prob = tmp_path / "prob.tif"
    predict(SAMPLE / "scene.tif", out=tmp_path / "smoke.gpkg", prob=prob)
    with rasterio.open(prob) as src, rasterio.open(SAMPLE / "mask.tif") as truth:
        found = src.read(1) >= 250 * read_card(bundled_models()["satellite"]).threshold
        score = count(found, truth.read(1))
    assert score.f1 > 0.6
