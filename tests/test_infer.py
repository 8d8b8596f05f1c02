"""Tiles are read ahead and run side by side, and nothing of that shows in the result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from toy_models import (
    StubEngine,
    constant,
    pixelwise,
    recipe_for,
    save_toy,
    stub_plan,
    swept,
    toy_card,
)
from toy_scenes import SATELLITE, landscape, scene_of, write_scene

from smokegeo.engine import Effort, Engine
from smokegeo.errors import InputError
from smokegeo.fitting import fit_model
from smokegeo.infer import Loader, smoke_tiles
from smokegeo.probability import NODATA
from smokegeo.radiometry import Scaling
from smokegeo.scene.opening import open_scene
from smokegeo.sweep import Plan
from smokegeo.tiles import Grid


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_toy(tmp_path_factory.mktemp("model") / "toy.safetensors", whole=True)


@pytest.fixture(scope="module")
def some_bands(tmp_path_factory):
    """A scene with two bands too few, a block of nodata, and a few stray pixels of it."""
    values = landscape(4, (100, 110))
    values[:, 20:40, 30:100] = 0
    values[0, 70:73, 5] = 0
    names = ("blue", "red", "nir", "swir2")
    path = tmp_path_factory.mktemp("scene") / "scene.tif"
    return write_scene(path, values, names, nodata=0)


def plan_for(model, path, tile=48, overlap=12):
    scene = open_scene(path)
    fit = fit_model(scene, model)
    count = len(fit.card.bands)
    return Plan(
        scene,
        fit,
        recipe_for(fit, Scaling((1.0,) * count, (0.0,) * count, "")),
        Grid(scene.width, scene.height, tile, overlap),
    )


def engine_for(plan, **effort):
    return Engine(plan.fit, Effort(device="cpu", **effort).resolved())


# What the network is given


def loaded(values, bands=None, **facts):
    """Return what the network is given of a scene that is one tile, and where it is valid."""
    plan = stub_plan(scene_of(values, **facts), 200, 0, bands=bands)
    with Loader(plan.scene, plan.fit, plan.recipe) as loader:
        return loader(next(plan.grid.row_tiles(0)))


def test_values_are_normalised_by_the_card_and_put_in_its_order():
    values = np.stack([np.full((3, 4), v, np.uint16) for v in (100, 200, 300)])
    scene = scene_of(values)
    card = toy_card(
        scene.bands.subset(["b2", "b0"]), mean=(50.0, 10.0), std=(5.0, 2.0), high=(500.0, 500.0)
    )
    plan = stub_plan(scene, bands=card.bands)
    fit = replace(plan.fit, card=card)
    with Loader(scene, fit, recipe_for(fit, Scaling((0.5, 1.0), (0.0, 30.0), ""))) as loader:
        tensor, valid = loader(next(plan.grid.row_tiles(0)))
    assert valid.all()
    assert tensor.dtype == np.float32
    np.testing.assert_allclose(tensor[0], (300 * 0.5 - 50) / 5, rtol=1e-6)
    np.testing.assert_allclose(tensor[1], (100 + 30 - 10) / 2, rtol=1e-6)


def test_absent_bands_are_zero_and_in_their_place():
    values = np.full((2, 3, 3), 7, np.float32)
    scene = scene_of(values)
    tensor, _ = loaded(values[1:], bands=scene.bands, bands_from="", placed=True)
    assert tensor.shape == (2, 3, 3)  # b0 of one band is b0 of the two
    assert (tensor[0] == 7).all()
    assert (tensor[1] == 0).all()


def test_invalid_pixels_are_filled_with_what_lies_beside_them():
    values = np.full((2, 3, 3), 7, np.float32)
    values[1, 0, 0] = np.nan
    tensor, valid = loaded(values)
    assert not valid[0, 0]
    assert valid.sum() == 8
    assert (tensor == 7).all()


def test_numbers_that_no_sensor_measures_are_not_given_to_the_network():
    values = np.full((2, 3, 3), 7, np.float32)
    values[0, 1, 1] = np.finfo(np.float32).max
    values[1, 2, 2] = -1e30
    tensor, valid = loaded(values)
    assert np.argwhere(~valid).tolist() == [[1, 1], [2, 2]]
    assert np.abs(tensor).max() == 7


def test_an_invalid_tile_is_not_loaded():
    tensor, valid = loaded(np.full((2, 3, 3), np.nan, np.float32))
    assert tensor is None
    assert not valid.any()


def test_threads_share_one_open_scene_and_it_is_closed(some_bands, model, monkeypatch):
    from smokegeo.scene import layers

    opened = []
    real_open = layers.open_raster
    monkeypatch.setattr(layers, "open_raster", lambda p: opened.append(real_open(p)) or opened[-1])
    plan = plan_for(model, some_bands)
    opened.clear()
    swept(plan, StubEngine(constant(1), plan.fit.card, threads=3))
    assert [src.closed for src in opened] == [True]


# What the network is not given


def holey(fill):
    """Two bands with a hole larger than a tile, filled with something."""
    values = np.random.default_rng(1).integers(1, 50, (2, 100, 100)).astype(np.float32)
    values[:, 20:80, 20:80] = fill
    return values


def test_fully_invalid_tiles_are_never_given_to_the_network():
    plan = stub_plan(scene_of(holey(np.nan)), 20, 4)
    for batch, threads, device in ((1, 1, "cpu"), (4, 2, "cpu"), (4, 1, "cuda")):
        engine = StubEngine(pixelwise, plan.fit.card, batch=batch, threads=threads, device=device)
        found = swept(plan, engine)
        assert (found[20:80, 20:80] == NODATA).all()
        assert (found == NODATA).sum() == 3600
        given = np.concatenate(engine.batches)
        assert (given != 0).any(axis=(1, 2, 3)).all()
        assert len(given) < len(plan.grid)


def test_what_nodata_pixels_hold_never_matters(model, tmp_path):
    maps = []
    holes = np.zeros((100, 110), bool)
    holes[30:45, 20:60] = holes[80, 3] = True
    for number, junk in enumerate((1, 9999, 40_000)):
        values = landscape(6, (100, 110))
        values[:, holes] = junk
        path = write_scene(tmp_path / f"{number}.tif", values, valid=~holes)
        plan = plan_for(model, path)
        maps.append(swept(plan, engine_for(plan)))
    assert ((maps[0] == NODATA) == holes).all()
    assert len(np.unique(maps[0])) > 20
    assert (maps[0] == maps[1]).all()
    assert (maps[0] == maps[2]).all()


# What does not change the result


def test_batch_and_threads_do_not_change_a_single_byte(model, some_bands):
    plan = plan_for(model, some_bands)
    assert plan.fit.matching.available == (True, False, True, True, False, True)
    wanted = swept(plan, engine_for(plan, batch=1, threads=1))
    assert len(np.unique(wanted)) > 20
    assert (wanted == NODATA).sum() == 20 * 70 + 3
    for batch, threads in ((2, 1), (3, 2), (16, 1), (1, 4), (5, 3)):
        engine = engine_for(plan, batch=batch, threads=threads)
        assert (swept(plan, engine) == wanted).all(), (batch, threads)


def test_not_even_the_unrounded_smoke_depends_on_the_batch(model, some_bands):
    plan = plan_for(model, some_bands, 32, 8)

    def smoke(**effort):
        tiles = [tile for row in range(4) for tile in plan.grid.row_tiles(row)]
        with Loader(plan.scene, plan.fit, plan.recipe) as loader:
            found = list(smoke_tiles(loader, engine_for(plan, **effort), tiles))
        assert [tile for tile, _, _ in found] == tiles
        return np.stack([np.zeros((32, 32)) if s is None else s for _, s, _ in found])

    assert (smoke(batch=1, threads=1) == smoke(batch=7, threads=2)).all()


def test_torch_keeps_its_number_of_threads():
    plan = stub_plan(scene_of(holey(1)))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        engine = StubEngine(pixelwise, plan.fit.card, threads=2)
        swept(plan, engine)
        assert torch.get_num_threads() == 2
        with ThreadPoolExecutor(1) as fresh:  # a new thread begins with the number last set
            assert fresh.submit(torch.get_num_threads).result() == 2
        assert engine.torch_threads == {1}  # each tile in one, so that cores do not matter
        with pytest.raises(ZeroDivisionError):
            swept(plan, StubEngine(lambda tiles: 1 // 0, plan.fit.card))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_graphics_card_gets_whole_batches():
    plan = stub_plan(scene_of(holey(1)), 40, 10)
    engine = StubEngine(pixelwise, plan.fit.card, batch=4, device="cuda")
    swept(plan, engine)
    assert [len(batch) for batch in engine.batches] == [4, 4, 1]


def test_only_a_few_tiles_are_in_flight():
    plan = stub_plan(scene_of(holey(1)), 20, 4)
    asked = []

    def tiles():
        for row in range(len(plan.grid.rows)):
            for tile in plan.grid.row_tiles(row):
                asked.append(tile)
                yield tile

    engine = StubEngine(pixelwise, plan.fit.card, batch=2, threads=2)
    with Loader(plan.scene, plan.fit, plan.recipe) as loader:
        for done, _ in enumerate(smoke_tiles(loader, engine, tiles()), start=1):
            assert len(asked) - done <= 2 * (2 + 2)
    assert done == len(plan.grid)


def test_damage_met_while_reading_ahead_is_told(model, tmp_path):
    path = tmp_path / "hurt.tif"
    write_scene(path, landscape(6, (100, 110)), SATELLITE, compress="deflate")
    plan = plan_for(model, path)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8000] = bytes(8000)  # more than a strip, its head included
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"hurt\.tif is cut short or damaged at row"):
        swept(plan, engine_for(plan))
