"""Files are found and opened by the name a user gives, and with nothing that is not theirs."""

from __future__ import annotations

import logging

import pytest
import rasterio
from rasterio.errors import NotGeoreferencedWarning
from rasterio.transform import Affine
from toy_scenes import PLACE, damage_block, landscape, write_scene

from smokegeo.errors import InputError, UsageError
from smokegeo.scene.opening import open_scene
from smokegeo.scene.rasters import find_file, open_raster

S2_FILE = "S2B_MSIL2A_20230601T100559_N0509_R022_T33UUP_20230601T120000.tif"
WORLD = "10\n0\n0\n-10\n500005\n5499995\n"
ELSEWHERE = Affine.translation(9000, 0) @ PLACE


@pytest.fixture
def store(tmp_path):
    """A scene in a store of files named by their content, as many programs keep them."""
    (tmp_path / "blobs").mkdir()
    write_scene(tmp_path / "blobs" / "3f2a9c", landscape(6, (30, 40)), transform=ELSEWHERE)
    return tmp_path / "blobs"


def link(path, target):
    path.symlink_to(target)
    return path


def test_a_link_keeps_its_name_and_what_that_says(store, tmp_path):
    scene = open_scene(link(tmp_path / S2_FILE, store / "3f2a9c"))
    assert scene.name == S2_FILE
    assert scene.coding is not None
    assert scene.acquired is not None


def test_side_cars_of_a_link_are_heeded(store, tmp_path, caplog):
    path = link(tmp_path / "s.tif", store / "3f2a9c")
    with rasterio.open(store / "3f2a9c") as src:
        assert src.transform == ELSEWHERE
    numbers = ", ".join(map(str, PLACE.to_gdal()))
    aux = f"<PAMDataset><GeoTransform>{numbers}</GeoTransform></PAMDataset>"
    (store / "77").write_text(aux)
    link(tmp_path / "s.tif.aux.xml", store / "77")  # out of the store as well
    with caplog.at_level(logging.INFO, logger="smokegeo"):
        assert open_scene(path).transform == PLACE
    assert "georeference from s.tif.aux.xml" in caplog.text


def test_side_cars_where_a_link_leads_are_heeded_if_it_has_none(tmp_path):
    (tmp_path / "data").mkdir()
    with pytest.warns(NotGeoreferencedWarning):
        write_scene(tmp_path / "data" / "s.tif", landscape(6, (30, 40)), transform=None)
    (tmp_path / "data" / "s.tfw").write_text(WORLD)
    assert open_scene(link(tmp_path / "s.tif", "data/s.tif")).transform == PLACE
    assert open_scene(link(tmp_path / "other.tif", "data/s.tif")).transform == PLACE


def test_a_side_car_that_is_a_link_to_elsewhere_is_refused(store, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "77").write_text("<PAMDataset></PAMDataset>")
    path = link(tmp_path / "s.tif", store / "3f2a9c")
    link(tmp_path / "s.tif.aux.xml", tmp_path / "home" / "77")
    with pytest.raises(InputError, match=r"s\.tif leads to another file, s\.tif\.aux\.xml"):
        open_raster(path)


def test_the_way_to_a_file_goes_through_links_of_folders(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    link(tmp_path / "c", "a/b")
    write_scene(tmp_path / "a" / "s.tif", landscape(1, (8, 8)), None)
    assert find_file(tmp_path / "c" / ".." / "s.tif") == tmp_path / "a" / "s.tif"


@pytest.mark.parametrize(("data", "header"), [("S.DAT", "S.HDR"), ("S.IMG", "S.IMG.HDR")])
def test_endings_of_envi_may_be_in_capitals(tmp_path, data, header):
    values = landscape(6, (30, 40))
    path = write_scene(tmp_path / "s.tif", values)
    with rasterio.open(path) as src:
        profile = {**src.profile, "driver": "ENVI"}
        names = src.descriptions
    for option in ("photometric", "interleave", "tiled", "blockysize", "compress"):
        profile.pop(option, None)
    with rasterio.open(tmp_path / data, "w", **profile) as dst:
        dst.write(values)
        dst.descriptions = names
    (made,) = tmp_path.glob("*.hdr")
    made.rename(tmp_path / header)
    assert open_scene(tmp_path / data).width == 40
    if header == "S.HDR":
        assert open_scene(tmp_path / header).name == data


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("https://a.b/s.tif", r"^https://a\.b/s\.tif: .*local files only\. Download it first"),
        ("s3://a/s.tif", r"^s3://a/s\.tif: .*local files only"),
        ("/vsizip/a.zip/s.tif", r"^/vsizip/a\.zip/s\.tif: .*local files only\. Unpack"),
        ("/vsicurl/https://a.b/s.tif", "local files only.*or download it"),
    ],
)
def test_what_is_no_local_file_is_refused_by_its_own_name(path, said):
    with pytest.raises(UsageError, match=said):
        open_scene(path)


def test_an_environment_makes_no_zeros_of_damaged_blocks(tmp_path):
    tiles = {"tiled": True, "blockxsize": 16, "blockysize": 16, "compress": "deflate"}
    path = write_scene(tmp_path / "s.tif", landscape(6, (64, 64)), **tiles)
    damage_block(path, 1, 1)
    # Not by os.environ: rasterio would keep the setting for all tests that follow.
    with rasterio.Env(GTIFF_IGNORE_READ_ERRORS="YES"):
        scene = open_scene(path)
        with scene.open() as reader, pytest.raises(InputError, match="damaged at row"):
            reader.read(scene.whole, range(6))
