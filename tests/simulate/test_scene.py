import json

import geopandas as gpd
import numpy as np
import pytest
import rasterio
from rasterio.features import rasterize

from smokegeo.bandmeta import read_bands
from smokegeo.errors import UsageError
from smokegeo.rastermeta import raster_meta
from smokegeo.sensors import sensor
from smokegeo.simulate.annotators import visible_smoke
from smokegeo.simulate.frame import expose
from smokegeo.simulate.optics import Layer, Particles
from smokegeo.simulate.placement import frame_place
from smokegeo.simulate.scene import _write_bands, simulate_scene
from smokegeo.simulate.stage import build_stage
from smokegeo.simulate.views import ImageryView


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    root = tmp_path_factory.mktemp("scene") / "out"
    return root, simulate_scene(root, "satellite", (300, 200), 1)


def test_scene_is_georeferenced_and_knows_its_bands(scene):
    root, _ = scene
    with rasterio.open(root / "scene.tif") as src:
        assert (src.width, src.height) == (300, 200)
        assert 32601 <= src.crs.to_epsg() <= 32660
        reading = read_bands(raster_meta(src))
        assert reading.source == "IMAGERY metadata"
        assert reading.bands.wavelengths_nm == sensor("satellite").bands.wavelengths_nm
        assert reading.bands.names == sensor("satellite").bands.names


def test_truth_polygons_cover_the_mask(scene):
    root, facts = scene
    with rasterio.open(root / "mask.tif") as src:
        mask, crs, transform = src.read(1), src.crs, src.transform
    truth = gpd.read_file(root / "truth.geojson")
    assert len(truth) == facts.polygons > 0
    assert truth.crs.to_epsg() == 4326
    assert truth.is_valid.all()
    drawn = rasterize(truth.to_crs(crs).geometry, mask.shape, transform=transform)
    # RFC 7946 keeps seven decimals, about a centimetre.
    assert (drawn != mask).mean() < 1e-3
    assert truth["pixels"].sum() == mask.sum()
    assert facts.smoke_share == pytest.approx(mask.mean())


def test_truth_is_plain_rfc_7946(scene):
    data = json.loads((scene[0] / "truth.geojson").read_text())
    assert "crs" not in data
    for feature in data["features"]:
        ring = np.array(feature["geometry"]["coordinates"][0])
        area = np.sum(ring[:-1, 0] * ring[1:, 1] - ring[1:, 0] * ring[:-1, 1])
        assert area > 0, "outer rings run counter-clockwise"


def test_the_same_seed_gives_the_same_scene(scene, tmp_path):
    simulate_scene(tmp_path / "again", "satellite", (300, 200), 1)
    for name in ("scene.tif", "mask.tif", "truth.geojson"):
        assert (tmp_path / "again" / name).read_bytes() == (scene[0] / name).read_bytes()


def test_smoke_over_plants_is_seen_in_scenes_as_it_is_in_frames(tmp_path):
    bands, shape = sensor("satellite").bands, (64, 64)
    leaves = dict(zip(bands.names, (0.03, 0.05, 0.03, 0.5, 0.2, 0.1), strict=True))
    view = ImageryView({n: np.full(shape, v, np.float32) for n, v in leaves.items()}, "leaves")
    rng = np.random.default_rng(0)
    stage = build_stage("satellite", shape, bands, "complex_background", rng, view)
    tau, light = np.full(shape, 1.0, np.float32), np.ones((1, 1), np.float32)
    smoke = Layer(tau, light, Particles(1.0, 0.1, 1.0, albedo=0.18))
    place = frame_place(0, 0, (1, 1), 10.0)
    seen = _write_bands(tmp_path / "scene.tif", stage, smoke, bands, place, rng)
    exposed = expose(stage, smoke, bands, rng)
    assert np.array_equal(seen, visible_smoke(exposed.opacity, exposed.change))
    assert np.median(seen) > 0.4


@pytest.mark.parametrize("kind", ["hss", "mss"])
def test_other_kinds_give_scenes_with_their_bands(tmp_path, kind):
    simulate_scene(tmp_path / "out", kind, (70, 50), 0)
    with rasterio.open(tmp_path / "out" / "scene.tif") as src:
        assert src.descriptions == sensor(kind).bands.names
        assert src.crs.is_projected


def test_only_a_scene_is_overwritten(tmp_path):
    out = tmp_path / "out"
    simulate_scene(out, "satellite", (32, 32), 0)
    simulate_scene(out, "satellite", (40, 32), 0, overwrite=True)
    with rasterio.open(out / "scene.tif") as src:
        assert src.width == 40
    (out / "truth.geojson").unlink()
    with pytest.raises(UsageError, match=r"no truth\.geojson.* stays as it is"):
        simulate_scene(out, "satellite", (32, 32), 0, overwrite=True)
    assert (out / "scene.tif").exists()


def test_a_tiny_scene_is_refused(tmp_path):
    with pytest.raises(UsageError, match="8x8"):
        simulate_scene(tmp_path / "out", "satellite", (8, 8), 0)


@pytest.mark.slow
def test_a_large_scene_is_manageable(tmp_path):
    facts = simulate_scene(tmp_path / "out", "satellite", (2048, 1500), 0)
    assert facts.polygons > 3
    assert 0.001 < facts.smoke_share < 0.5
