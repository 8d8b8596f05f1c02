"""A model may look at a scene enlarged, too; what it sees best counts."""

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
from smokegeo.modelfile import load_model
from smokegeo.scene.opening import open_scene
from smokegeo.stitch import FULL
from smokegeo.tiles import Grid
from smokegeo.zoom import enlarge, shrink, smoke_seen


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
    once, also = (smoke_seen(brightness, images, None, zooms) for zooms in ((1,), (1, 2)))
    torch.testing.assert_close(once, also)


def test_the_most_that_is_seen_with_any_zoom_counts():
    def small_things(images, available=None):
        """Sees nothing in images as they are, all in enlarged ones."""
        return brightness(images if images.shape[-1] > 8 else -images)

    images = torch.full((1, 1, 8, 8), 3.0)
    assert float(smoke_seen(small_things, images, None, (1,)).max()) < 0.1
    assert float(smoke_seen(small_things, images, None, (1, 2)).min()) > 0.9


@pytest.mark.parametrize("zooms", [[], [0], [1, 8], ["2"], [1.5], [-1]])
def test_a_card_with_zooms_that_are_none_is_refused(zooms):
    with pytest.raises(UsageError, match="zooms"):
        replace(toy_card(), input={"zooms": zooms})


def test_a_card_may_ask_for_a_closer_look_only_where_there_are_bands_enough():
    card = replace(toy_card(), input={"zooms": [1, 2], "zoom_bands": 5})
    assert card.zooms_for(5) == (1, 2)
    assert card.zooms_for(4) == (1,)
    with pytest.raises(UsageError, match="zoom_bands"):
        replace(card, input={"zooms": [1, 2], "zoom_bands": "many"})


@pytest.fixture
def zooming(tmp_path):
    """A model file whose card asks for a look at twice the size, and a scene."""
    path = save_toy(tmp_path / "zooming.safetensors", whole=True, input={"zooms": [1, 2]})
    scene = write_scene(tmp_path / "scene.tif", landscape(len(SATELLITE), (70, 50)), SATELLITE)
    return path, scene


def test_predict_looks_as_the_card_asks_and_once_if_it_must_be_fast(zooming):
    path, scene = zooming
    fit = fit_model(open_scene(scene), path)
    network = load_model(path).for_inference()
    tile = np.random.default_rng(0).normal(size=(1, fit.card.channels, 64, 48)).astype(np.float32)
    for fast, zooms in ((False, (1, 2)), (True, (1,))):
        engine = Engine(fit, Effort(fast=fast).resolved())
        assert engine.zooms == zooms
        with torch.inference_mode():
            expected = smoke_seen(network, torch.from_numpy(tile), None, zooms)
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
