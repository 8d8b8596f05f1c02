"""Where a scene lies: the size of its pixels on the ground."""

from __future__ import annotations

import math

import pytest
from rasterio.crs import CRS
from rasterio.transform import Affine

from smokegeo.errors import InputError
from smokegeo.labels import Place
from smokegeo.scene.georeference import check_place, pixel_size_m


def test_the_pixel_size_is_that_on_the_ground():
    degrees = Place(CRS.from_epsg(4326), Affine(0.001, 0, 15, 0, -0.001, 60.01))
    width, height = pixel_size_m(degrees, 20, 20)
    assert width == pytest.approx(111_320 * 0.001 * math.cos(math.radians(60)), rel=0.01)
    assert height == pytest.approx(111.4, rel=0.01)
    mercator = Place(CRS.from_epsg(3857), Affine(10, 0, 1_670_000, 0, -10, 8_400_000))
    width, height = pixel_size_m(mercator, 20, 20)
    assert width == pytest.approx(5, rel=0.02)  # at 60 degrees Mercator doubles everything
    assert height == pytest.approx(5, rel=0.02)


def test_a_scene_in_pixels_has_no_size_on_the_ground():
    assert pixel_size_m(Place(None, Affine.identity()), 20, 20) is None


def test_coordinates_from_the_centre_of_the_earth_place_no_picture():
    place = Place(CRS.from_epsg(4978), Affine(10, 0, 4_000_000, 0, -10, 1_000_000))
    with pytest.raises(InputError, match=r"counts from the centre of the Earth.*gdal_edit -a_srs"):
        check_place(place, 20, 20, "s.tif")
