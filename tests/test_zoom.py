"""A model may look at a scene enlarged, too, and from afar."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from toy_models import save_toy, toy_card
from toy_scenes import SATELLITE, landscape, write_scene

from smokegeo.engine import Effort, Engine
from smokegeo.errors import UsageError
from smokegeo.estimate import estimate
from smokegeo.fitting import fit_model
from smokegeo.looks import ONCE, Looks
from smokegeo.modelfile import load_model
from smokegeo.pipeline import Request, prepare, provenance
from smokegeo.scene.opening import open_scene
from smokegeo.scene.options import SceneOptions
from smokegeo.stitch import FULL
from smokegeo.sweep import sweep
from smokegeo.tiles import Grid
from smokegeo.zoom import as_seen, enlarge, reduced, restored, shrink, smoke_seen, together


def brightness(images: torch.Tensor, available: torch.Tensor | None = None) -> torch.Tensor:
    """A network that sees smoke where the first channel is bright."""
    return torch.stack([torch.zeros_like(images[:, 0]), images[:, 0]], dim=1)


@pytest.mark.parametrize("zoom", [1, 2, 3])
def test_what_is_enlarged_and_shrunk_is_where_it_was(zoom):
    images = torch.zeros(1, 2, 9, 11)
    images[:, :, 4, 7] = 1
    large = enlarge(images, zoom)
    assert large.shape == (1, 2, 9 * zoom, 11 * zoom)
    back = shrink(large[:, 0], zoom)
    assert back.shape == (1, 9, 11)
    assert divmod(int(back.argmax()), 11) == (4, 7)
    assert back[0, 3, 7] == pytest.approx(float(back[0, 5, 7]), abs=1e-3)  # moved to neither side
    assert back[0, 4, 6] == pytest.approx(float(back[0, 4, 8]), abs=1e-3)


def test_an_even_image_looks_the_same_enlarged():
    images = torch.full((2, 3, 8, 8), 0.7)
    often = Looks((1, 0.5), (2,))
    once, also = (smoke_seen(brightness, images, None, looks) for looks in (ONCE, often))
    torch.testing.assert_close(once, also)


def test_the_most_that_is_seen_with_any_zoom_counts():
    def small_things(images, available=None):
        """Sees nothing in images as they are, all in enlarged ones."""
        return brightness(images if images.shape[-1] > 8 else -images)

    images = torch.full((1, 1, 8, 8), 3.0)
    assert float(smoke_seen(small_things, images, None, ONCE).max()) < 0.1
    assert float(smoke_seen(small_things, images, None, Looks((1,), (2,))).min()) > 0.9


@pytest.mark.parametrize("margin", [0.0, 0.5, 3.0])
def test_a_closer_look_must_be_surer_by_a_margin_of_votes(margin):
    plain, close = torch.tensor([[[0.5, 0.0, 1.0]]]), torch.tensor([[[0.9, 0.3, 1.0]]])
    large = close.repeat_interleave(2, 1).repeat_interleave(2, 2)
    expected = torch.maximum(plain, torch.sigmoid(torch.logit(close) - margin))
    looks = Looks((1,), (2,), margin)
    torch.testing.assert_close(together([plain, large], looks, plain.shape[1:]), expected)


def test_votes_of_what_is_seen_at_several_sizes_are_averaged():
    plain, far = torch.full((1, 5, 7), 0.8), torch.full((1, 3, 4), 0.2)
    both = together([plain, far], Looks((1, 0.5)), (5, 7))
    torch.testing.assert_close(both, torch.full((1, 5, 7), 0.5))
    close = torch.full((1, 10, 14), 0.6)
    most = together([plain, far, close], Looks((1, 0.5), (2,)), (5, 7))
    torch.testing.assert_close(most, torch.full((1, 5, 7), 0.6))  # a closer look is not averaged
    mean = together([plain, far, close], Looks((1, 0.5, 2)), (5, 7))
    torch.testing.assert_close(mean, torch.sigmoid(torch.logit(close[:, ::2, ::2]) / 3))


def test_a_look_that_is_sure_counts_for_more_and_none_is_beyond_doubt():
    unsure, sure = torch.full((1, 4, 4), 0.7), torch.full((1, 2, 2), 0.01)
    assert float(together([unsure, sure], Looks((1, 0.5)), (4, 4)).max()) < 0.2
    never, always = torch.zeros(1, 4, 4), torch.ones(1, 2, 2)
    both = together([never, always], Looks((1, 0.5)), (4, 4))
    torch.testing.assert_close(both, torch.full((1, 4, 4), 0.5), atol=0.03, rtol=0)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (15, 22)])
def test_each_look_sees_the_image_at_its_size(shape):
    images = torch.ones(1, 2, *shape)
    sizes = [tuple(look.shape[2:]) for look in as_seen(images, Looks((1, 0.5), (3,)))]
    assert sizes == [shape, tuple(-(-n // 2) for n in shape), tuple(3 * n for n in shape)]


def test_predict_looks_as_the_card_says(tmp_path):
    facts = {"sizes": [1, 0.5], "closer": [2], "closer_margin": 2.5}
    path = save_toy(tmp_path / "margin.safetensors", whole=True, input=facts)
    scene = write_scene(tmp_path / "scene.tif", landscape(len(SATELLITE), (70, 50)), SATELLITE)
    fit, network = fit_model(open_scene(scene), path), load_model(path).for_inference()
    assert fit.card.looks == Looks((1, 0.5), (2,), 2.5)
    assert toy_card().looks == ONCE
    tile = np.random.default_rng(0).normal(size=(1, fit.card.channels, 64, 48)).astype(np.float32)
    with torch.inference_mode():
        seen = [
            smoke_seen(network, torch.from_numpy(tile), None, looks).numpy()
            for looks in (fit.card.looks, Looks((1, 0.5), (2,)), Looks((1,), (2,), 2.5))
        ]
    found = Engine(fit, Effort().resolved())(tile) / FULL
    np.testing.assert_allclose(found, seen[0], atol=1e-4)
    assert min(np.abs(seen[0] - other).max() for other in seen[1:]) > 0.01


@pytest.mark.parametrize("sizes", [[0], [1, 8], ["2"], [1.5], [-1], [1, 1]])
@pytest.mark.parametrize("name", ["sizes", "closer"])
def test_a_card_with_sizes_that_are_none_is_refused(name, sizes):
    with pytest.raises(UsageError, match=name):
        replace(toy_card(), input={name: sizes})


@pytest.fixture
def zooming(tmp_path):
    """A model file whose card asks for looks at twice and half the size, and a scene."""
    facts = {"sizes": [1, 0.5], "closer": [2]}
    path = save_toy(tmp_path / "zooming.safetensors", whole=True, input=facts)
    scene = write_scene(tmp_path / "scene.tif", landscape(len(SATELLITE), (70, 50)), SATELLITE)
    return path, scene


def test_predict_enlarges_nothing_if_it_must_be_fast(zooming):
    path, scene = zooming
    fit = fit_model(open_scene(scene), path)
    network = load_model(path).for_inference()
    tile = np.random.default_rng(0).normal(size=(1, fit.card.channels, 64, 48)).astype(np.float32)
    for fast, looks in ((False, Looks((1, 0.5), (2,))), (True, Looks((1, 0.5)))):
        engine = Engine(fit, Effort(fast=fast).resolved())
        assert engine.looks == looks
        with torch.inference_mode():
            expected = smoke_seen(network, torch.from_numpy(tile), None, looks)
        np.testing.assert_allclose(engine(tile) / FULL, expected.numpy(), atol=1e-4)


def test_an_enlarged_look_is_counted_in_the_memory_it_takes(zooming):
    path, scene = zooming
    opened = open_scene(scene)
    fit, grid = fit_model(opened, path), Grid(50, 70, 512, 128)
    once, also = (
        estimate(opened, grid, Engine(fit, Effort(threads=1, fast=fast).resolved()))
        for fast in (True, False)
    )
    assert also.memory_bytes > once.memory_bytes


@pytest.mark.parametrize("factor", [1, 2, 3, 5])
def test_what_is_reduced_and_restored_is_where_it_was(factor):
    images = torch.zeros(1, 2, 31, 44)
    images[:, :, 10:20, 15:30] = 1
    small = reduced(images, factor)
    assert small.shape == (1, 2, -(-31 // factor), -(-44 // factor))
    back = restored(small[:, 0], factor, (31, 44))
    assert back.shape == (1, 31, 44)
    y, x = torch.meshgrid(torch.arange(31.0), torch.arange(44.0), indexing="ij")
    centre = [float((back[0] * axis).sum() / back[0].sum()) for axis in (y, x)]
    assert centre == pytest.approx([14.5, 22.0], abs=0.5)
    assert float(back[0, 14, 22]) > 0.95


def test_a_network_sees_a_reduced_image_and_the_map_has_all_pixels():
    def small_only(images, available=None):
        return brightness(images if images.shape[-1] < 20 else -images)

    images = torch.full((1, 1, 30, 50), 3.0)
    assert float(smoke_seen(small_only, images, None).max()) < 0.1
    seen = smoke_seen(small_only, images, None, reduction=4)
    assert seen.shape == (1, 30, 50)
    assert float(seen.min()) > 0.9


def test_pictures_are_reduced_to_about_the_size_of_the_training_s():
    card = replace(toy_card(), input={"side_px": 640})
    sides = {300: 1, 640: 1, 641: 2, 1080: 2, 1281: 3, 3000: 5, 100_000: 16}
    assert {side: card.reduction_for(2 * side, side) for side in sides} == sides
    assert toy_card().reduction_for(5000, 5000) == 1
    with pytest.raises(UsageError, match="side_px"):
        replace(card, input={"side_px": "large"})


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_a_picture_without_a_place_is_reduced_and_one_with_a_place_is_not(tmp_path):
    path = save_toy(tmp_path / "m.safetensors", whole=True, input={"side_px": 40})
    values = landscape(len(SATELLITE), (130, 90))
    placed = open_scene(write_scene(tmp_path / "a.tif", values, SATELLITE))
    bare = write_scene(tmp_path / "b.tif", values, SATELLITE, crs=None, transform=None)
    picture = open_scene(bare, SceneOptions(pixel_coords=True))
    part = open_scene(bare, SceneOptions(pixel_coords=True, window="10,20,30,35"))
    ready = [prepare(scene, Request(model=path)) for scene in (placed, picture, part)]
    assert [r.plan.reduction for r in ready] == [1, 3, 3]  # a part is seen as the whole is
    assert [r.engine.reduction for r in ready] == [1, 3, 3]
    said = [provenance(r.plan, 0.5, Request())["seen_at"] for r in ready]
    assert said == ["full size", "1/3 of its size", "1/3 of its size"]
    assert ready[1].plan.grid.tile_px == 3 * ready[0].plan.grid.tile_px
    rows = [part for _, _, part in sweep(ready[1].plan, ready[1].engine, 0, 1)]
    assert np.concatenate(rows).shape == (130, 90)


def test_a_reduced_look_takes_less_memory(tmp_path):
    path = save_toy(tmp_path / "m.safetensors", whole=True)
    scene = open_scene(
        write_scene(tmp_path / "a.tif", landscape(len(SATELLITE), (70, 50)), SATELLITE)
    )
    fit, grid = fit_model(scene, path), Grid(50, 70, 512, 128)
    full, small = (
        estimate(scene, grid, Engine(fit, Effort(threads=1).resolved(), None, reduction))
        for reduction in (1, 2)
    )
    assert small.memory_bytes < full.memory_bytes
