"""Product folders become band files with the right numbers, or are refused in one line."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import products as fake
import pytest
import rasterio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy_scenes import write_scene

from smokegeo.errors import InputError
from smokegeo.scene.opening import open_scene
from smokegeo.scene.products import Product, is_product, read_product
from smokegeo.sensors import sensor

ALL_S2 = tuple(band.name for band in sensor("sentinel2").bands)


def refusal(path: Path, ending: str = ".") -> str:
    """Return the one line with which a product is refused; one that is a command ends in it."""
    with pytest.raises(InputError) as caught:
        read_product(path)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(ending)
    return text


def names(product: Product) -> tuple[str, ...]:
    return tuple(file.band.name for file in product.files)


def physical(product: Product, band: str) -> float:
    """Scale the last pixel of a band."""
    file = next(file for file in product.files if file.band.name == band)
    with rasterio.open(file.path) as src:
        return float(src.read(file.index)[-1, -1]) * file.scale + file.offset


# Sentinel-2


def test_level_1c_lists_all_bands_in_order_with_offset_and_time(tmp_path):
    product = read_product(fake.safe_product(tmp_path, "L1C"))
    assert names(product) == ALL_S2
    assert product.sensor == "sentinel2"
    assert product.name == "S2B_MSIL1C_20240830T100559_N0511_R022_T32TPS_20240830T134009"
    assert product.acquired == datetime(2024, 8, 30, 10, 5, 59, 24000, tzinfo=UTC)
    assert product.notes == ()
    for file in product.files:
        assert (file.index, file.nodata) == (1, 0)
        assert file.band in sensor("sentinel2").bands
        assert physical(product, file.band.name) == pytest.approx((2000 - 1000) / 10000)


def test_level_2a_takes_each_band_at_its_finest(tmp_path):
    product = read_product(fake.safe_product(tmp_path))
    assert names(product) == tuple(b for b in ALL_S2 if b != "B10")
    assert product.notes == ()
    for file in product.files:
        assert file.path.parent.name == f"R{fake.S2_NATIVE_M[file.band.name]}m"
        assert physical(product, file.band.name) == pytest.approx(0.1)


def test_each_band_has_its_own_offset_and_the_products_quantification(tmp_path):
    xml = fake.s2_xml("L1C", quantification="5000", offsets={n: str(-n) for n in range(13)})
    product = read_product(fake.safe_product(tmp_path, "L1C", xml=xml))
    for number, file in enumerate(product.files):
        assert file.scale == pytest.approx(1 / 5000)
        assert file.offset == pytest.approx(-number / 5000)


def test_a_product_before_baseline_4_has_no_offset(tmp_path):
    xml = fake.s2_xml("L1C", baseline="03.01", offsets={})
    product = read_product(fake.safe_product(tmp_path, "L1C", bands=["B02"], xml=xml))
    assert physical(product, "B02") == pytest.approx(0.2)
    assert not any("offset" in note for note in product.notes)


@pytest.mark.parametrize(
    ("offsets", "band"), [({}, "B02"), ({0: "-1000", 1: "-1000"}, "B03")], ids=["none", "some"]
)
def test_an_offset_that_is_due_and_absent_is_refused(tmp_path, offsets, band):
    xml = fake.s2_xml(offsets=offsets)
    text = refusal(fake.safe_product(tmp_path, bands=["B02", "B03"], xml=xml))
    assert f"has no BOA_ADD_OFFSET for {band}" in text


@pytest.mark.parametrize(("baseline", "word"), [("99.99", "Sen2Cor"), (None, "baseline")])
def test_no_offset_where_it_may_be_right_is_said(tmp_path, baseline, word):
    xml = fake.s2_xml(baseline=baseline, offsets={})
    product = read_product(fake.safe_product(tmp_path, bands=["B02"], xml=xml))
    assert product.files[0].offset == 0
    assert any(word in note for note in product.notes)


def test_the_metadata_file_may_be_named_instead(tmp_path):
    safe = fake.safe_product(tmp_path, bands=["B02"])
    assert is_product(safe / "MTD_MSIL2A.xml")
    assert read_product(safe / "MTD_MSIL2A.xml") == read_product(safe)


def test_names_before_december_2016_are_read(tmp_path):
    safe = tmp_path / "S2A_OPER_PRD_MSIL1C_PDMC_20160616T171520_R022_V20160616T101032.SAFE"
    granule = "S2A_OPER_MSI_L1C_TL_SGS__20160616T153121_A005141_T32TPS"
    images = safe / "GRANULE" / f"{granule}_N02.03" / "IMG_DATA"
    fake.write_band(images / f"{granule}_B8A.jp2", gsd_m=20)
    xml = fake.s2_xml("L1C", baseline="02.03", offsets={})
    (safe / "S2A_OPER_MTD_SAFL1C_PDMC_20160616T171520_R022_V20160616T101032.xml").write_text(xml)
    product = read_product(safe)
    assert names(product) == ("B8A",)
    assert physical(product, "B8A") == pytest.approx(0.2)


def test_a_safe_folder_rewritten_as_geotiff_is_read(tmp_path):
    safe = fake.safe_product(tmp_path, bands=[])
    (safe / "MTD_MSIL2A.xml").rename(safe / "MTD_MSIL2a.xml")  # as the Planetary Computer has it
    images = next(safe.glob("GRANULE/*/IMG_DATA"))
    fake.write_band(images / "R10m" / "T32TPS_20240830T100559_B04_10m.tif", gsd_m=10)
    product = read_product(safe)
    assert physical(product, "B04") == pytest.approx(0.1)


def test_old_level_2a_spells_its_quantification_otherwise(tmp_path):
    xml = fake.s2_xml(
        baseline="02.04", offsets={}, quantification_name="L2A_BOA_QUANTIFICATION_VALUE"
    )
    product = read_product(fake.safe_product(tmp_path, bands=["B02"], xml=xml))
    assert product.files[0].scale == pytest.approx(1e-4)


def test_missing_bands_are_named_and_coarse_ones_said(tmp_path):
    safe = fake.safe_product(tmp_path, bands=["B02", "B03", "B11"])
    next(safe.glob("GRANULE/*/IMG_DATA/R10m/*_B03_10m.jp2")).unlink()
    product = read_product(safe)
    assert names(product) == ("B02", "B03", "B11")
    missing, coarse = product.notes
    assert missing.endswith("B01, B04, B05, B06, B07, B08, B8A, B09, B12")
    assert "B03 (20 m)" in coarse


def test_two_granules_are_refused_by_name(tmp_path):
    safe = fake.safe_product(tmp_path, bands=["B02"])
    fake.s2_granule(safe / "GRANULE" / "L2A_T32TQS_other", bands=["B02"])
    text = refusal(safe)
    assert "2 granules" in text
    assert "L2A_T32TQS_other" in text
    assert f"L2A_T32TPS_A039080_{fake.S2_TIME}" in text


def test_a_band_twice_at_one_size_is_refused(tmp_path):
    safe = fake.safe_product(tmp_path, bands=["B02"])
    images = next(safe.glob("GRANULE/*/IMG_DATA"))
    fake.write_band(images / "R10m" / "T32TPS_other_B02_10m.jp2", gsd_m=10)
    assert "has B02 twice" in refusal(safe)


def test_a_safe_folder_without_its_parts_is_refused(tmp_path):
    safe = fake.safe_product(tmp_path, bands=[])
    assert "no band" in refusal(safe)
    (safe / "MTD_MSIL2A.xml").unlink()
    assert is_product(safe)
    assert "lacks MTD_MSIL1C.xml or MTD_MSIL2A.xml" in refusal(safe)


def test_a_part_of_a_product_points_to_the_whole(tmp_path):
    safe = fake.safe_product(tmp_path, "L1C", bands=["B02"])
    images = next(safe.glob("GRANULE/*/IMG_DATA"))
    assert f"Name the whole: {safe}" in refusal(images)


def flat(folder: Path, prefix: str, suffix: str = "tif", ending: str = "", **facts) -> Path:
    for band in ("B02", "B03", "B04", "B8A"):
        gsd_m = fake.S2_NATIVE_M[band]
        name = f"{prefix}{band}{ending.format(gsd_m)}.{suffix}"
        fake.write_band(folder / name, gsd_m=gsd_m, **facts)
    return folder


@pytest.mark.parametrize("suffix", ["tif", "jp2", "TIF"])
def test_a_flat_folder_goes_by_the_metadata_beside_it(tmp_path, suffix):
    folder = flat(tmp_path / "clip", "T32TPS_20190830T100559_", suffix)
    (folder / "MTD_MSIL1C.xml").write_text(fake.s2_xml("L1C"))
    product = read_product(folder)
    assert names(product) == ("B02", "B03", "B04", "B8A")
    assert product.name == "T32TPS_20190830T100559"
    assert physical(product, "B8A") == pytest.approx(0.1)
    assert product.files[0].path.suffix == f".{suffix}"


@pytest.mark.parametrize(
    ("folder", "prefix", "expected", "why"),
    [
        ("clip", "T32TPS_20220124T100559_", 0.2, "20220124"),
        ("clip", "T32TPS_20220125T100559_", 0.1, "20220125"),
        ("S2A_MSIL2A_20190830T100559_N0500_R022_T32TPS_20230101T000000", "", 0.1, "N0500"),
        ("S2A_MSIL2A_20190830T100559_N0213_R022_T32TPS_20190830T120000", "", 0.2, "N0213"),
        ("S2A_MSIL2A_20190830T100559_N9999_R022_T32TPS_20230101T000000", "", 0.2, "20190830"),
    ],
)
def test_a_flat_folder_without_metadata_says_what_it_assumes(
    tmp_path, folder, prefix, expected, why
):
    product = read_product(flat(tmp_path / folder, prefix, ending="_{}m"))
    value = physical(product, "B02")
    if product.coding is not None:  # applied later, if the pixels bear it out
        value = product.coding.scale * value + product.coding.offset
        assert why in product.coding.why
    assert value == pytest.approx(expected)
    (doubt,) = product.doubts
    assert f"going by {'the date' if why.isdigit() else 'processing baseline'} {why}" in doubt
    remedy = "MTD_MSIL*.xml beside the bands, or give --raw --scale 1 --offset -1000"
    assert doubt.endswith("give --raw" if expected == 0.1 else remedy)
    assert not any("assuming" in note for note in product.notes)
    assert product.acquired is not None
    assert product.acquired.tzinfo is UTC


def test_an_assumed_offset_is_a_warning_unless_the_values_are_wanted_as_stored(tmp_path, caplog):
    folder = flat(tmp_path / "clip", "T20LMR_20220902T143741_", ending="_{}m")
    with caplog.at_level(logging.INFO, logger="smokegeo"):
        read_product(folder)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "T20LMR_20220902T143741: no MTD" in record.getMessage()
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="smokegeo"):
        product = read_product(folder, raw=True)
    assert not caplog.records
    assert not any("offset" in note for note in product.notes)
    assert {(file.scale, file.offset) for file in product.files} == {(1, 0)}


def test_the_own_tags_of_files_say_more_than_their_date(tmp_path):
    folder = flat(tmp_path / "clip", "T20LMR_20220902T143741_", scaling=(2e-4, -0.05))
    product = read_product(folder)
    assert physical(product, "B02") == pytest.approx(0.35)
    assert product.doubts == ()
    assert any("files' own tags" in note for note in product.notes)


@pytest.mark.parametrize("prefix", ["T20LMR_20220902T143741_", ""], ids=["date", "no date"])
@pytest.mark.parametrize("with_metadata", [True, False])
def test_what_a_band_file_declares_missing_is_heeded(tmp_path, prefix, with_metadata):
    folder = flat(tmp_path / "clip", prefix, dtype="int16", nodata=-9999)
    fake.write_band(folder / f"{prefix}B04.tif", gsd_m=10)
    if with_metadata:
        (folder / "MTD_MSIL2A.xml").write_text(fake.s2_xml())
    nodata = {file.band.name: file.nodata for file in read_product(folder).files}
    assert nodata == {"B02": -9999, "B03": -9999, "B04": 0, "B8A": -9999}


def test_a_flat_folder_without_a_date_is_read_as_stored_with_a_warning(tmp_path, caplog):
    product = read_product(flat(tmp_path / "clip", ""))
    assert names(product) == ("B02", "B03", "B04", "B8A")
    assert product.name == "clip"
    assert physical(product, "B8A") == 2000
    assert not product.scaled
    assert product.acquired is None
    assert "the stored values are taken as they are" in caplog.text
    assert "MTD_MSIL*.xml beside the bands, or give --scale 1 --offset -1000" in caplog.text
    caplog.clear()
    assert read_product(tmp_path / "clip", raw=True).doubts == ()
    assert not caplog.records


def test_a_flat_folder_without_a_date_goes_by_the_own_tags_of_its_files(tmp_path):
    product = read_product(flat(tmp_path / "clip", "", scaling=(1e-4, -0.1)))
    assert physical(product, "B02") == pytest.approx(0.1)
    assert product.scaled
    assert product.doubts == ()


def test_bands_with_and_without_tags_are_not_mixed(tmp_path):
    folder = flat(tmp_path / "clip", "", scaling=(1e-4, -0.1))
    fake.write_band(folder / "B03.tif", gsd_m=10)
    assert "with a scale tag and without: B03. Tag them alike" in refusal(folder, ending="")
    assert not read_product(folder, raw=True).scaled


def test_a_scale_that_leads_nowhere_is_refused(tmp_path):
    folder = flat(tmp_path / "clip", "", scaling=(math.inf, 0.0))
    assert "B02.tif has scale inf and offset 0, no usable numbers" in refusal(folder, ending="")


def test_band_numbers_that_may_be_of_another_sensor_are_a_doubt(tmp_path):
    for band in ("B02", "B03", "B04", "B05"):
        fake.write_band(tmp_path / "clip" / f"{band}.tif", gsd_m=30)
    (_, doubt) = read_product(tmp_path / "clip").doubts
    assert "assuming Sentinel-2. If it is another, name the files by colour" in doubt


def numbered(folder: Path, *numbers: object, prefix: str = "") -> Path:
    for number in numbers:
        fake.write_band(folder / f"{prefix}B{number}.tif", gsd_m=10)
    return folder


@pytest.mark.parametrize(
    ("numbers", "doubtful"),
    [
        ((2, 3, 4, 8, 11, 12), False),
        ((1, 2, 3, 4, 5, 6, 7, 8, "8A", 9, 11, 12), False),
        ((2, 3, 4, 8, 11), False),
        ((4, 3, 2, "8A"), False),
        ((2, 3, 4, 8), True),
        ((3, 4, 8), True),
    ],
)
def test_band_files_may_be_numbered_without_a_zero(tmp_path, numbers, doubtful):
    folder = numbered(tmp_path / "clip", *numbers)
    assert is_product(folder)
    product = read_product(folder)
    assert set(names(product)) == {f"B{str(number).rjust(2, '0')}" for number in numbers}
    assert any("assuming Sentinel-2" in doubt for doubt in product.doubts) == doubtful


def test_the_name_of_the_folder_tells_whose_numbers_they_are(tmp_path):
    product = read_product(numbered(tmp_path / "S2A_clip", 2, 3, 4, 5))
    assert names(product) == ("B02", "B03", "B04", "B05")
    assert not any("assuming Sentinel-2" in doubt for doubt in product.doubts)
    assert not is_product(numbered(tmp_path / "landsat8_clip", 2, 3, 4, 8))


@pytest.mark.parametrize(
    "numbers",
    [
        (2, 3, 4, 5, 6, 7),  # of Landsat 8
        (1, 2, 3, 4, 5, 7),  # of Landsat 5
        range(1, 9),  # of Landsat 7, or a part of Sentinel-2's
        range(1, 12),
        (2, 3, 4),
        (8,),
        (4, 8),
    ],
)
def test_numbers_that_may_be_landsats_are_not_taken_for_sentinel_2s(tmp_path, numbers):
    assert not is_product(numbered(tmp_path / "clip", *numbers))


def test_a_band_with_and_without_a_zero_is_there_twice(tmp_path):
    folder = numbered(tmp_path / "clip", "02", 2, 3, 4, "8A")
    assert "has B02 twice" in refusal(folder)


@pytest.mark.parametrize(
    ("dtype", "stored", "scale"), [("uint16", 6553, 1 / 65_535), ("uint8", 25, 1 / 255)]
)
def test_bands_of_the_copernicus_browser_stand_for_reflectances_from_0_to_1(
    tmp_path, dtype, stored, scale
):
    prefix = "2024-03-15-00_00_2024-03-15-23_59_Sentinel-2_L2A_"
    flat(tmp_path, prefix, "tiff", "_(Raw)", dtype=dtype, stored=stored)
    assert is_product(tmp_path)
    product = read_product(tmp_path)
    assert names(product) == ("B02", "B03", "B04", "B8A")
    assert physical(product, "B02") == pytest.approx(stored * scale)
    (doubt,) = product.doubts
    assert f"assuming that {dtype} stands for reflectances from 0 to 1" in doubt
    raw = read_product(tmp_path, raw=True)
    assert (raw.files[0].scale, raw.doubts) == (1, ())


def test_two_flat_products_in_a_folder_are_refused_by_name(tmp_path):
    flat(tmp_path, "T32TPS_20190830T100559_")
    text = refusal(flat(tmp_path, "T32TPS_20190902T100559_"))
    assert "T32TPS_20190830T100559" in text
    assert "T32TPS_20190902T100559" in text


def test_bands_of_another_sensor_are_no_sentinel_2(tmp_path):
    flat(tmp_path, "MOD09GA.A2020001.sur_refl_")
    assert not is_product(tmp_path)


# Landsat


def test_landsat_level_1_is_reflectance_under_the_sun_of_its_time(tmp_path):
    product = read_product(fake.landsat_level1(tmp_path))
    assert product.sensor == "landsat8"
    assert product.name == fake.L1_ID
    assert names(product) == ("B1", "B2", "B3", "B4", "B5", "B6", "B7", "B9")
    assert product.acquired == datetime(2020, 5, 7, 10, 16, 18, 480996, tzinfo=UTC)
    assert product.notes == ("thermal bands left out, being radiance: B10, B11",)
    for file in product.files:
        assert (file.index, file.nodata) == (1, 0)
        expected = (10000 * 2e-5 - 0.1) / math.sin(math.radians(60))
        assert physical(product, file.band.name) == pytest.approx(expected)


@pytest.mark.parametrize("with_mtl", [True, False])
def test_landsat_level_2_is_surface_reflectance_and_kelvin(tmp_path, with_mtl):
    text = fake.mtl(fake.L2_ID, level2=True) if with_mtl else None
    product = read_product(fake.landsat_level2(tmp_path, text))
    assert names(product) == ("B1", "B2", "B3", "B4", "B5", "B6", "B7", "B10")
    assert physical(product, "B4") == pytest.approx(10000 * 2.75e-5 - 0.2)
    assert physical(product, "B10") == pytest.approx(10000 * 0.00341802 + 149)
    assert (product.acquired is not None) == with_mtl
    assert (product.notes == ()) == with_mtl
    if not with_mtl:
        assert any("20200507" in note for note in product.notes)


@pytest.mark.parametrize(
    ("product_id", "kind", "thermal"),
    [
        ("LT05_L1TP_193028_20050701_20161125_01_T1", "landsat5", ["B6"]),
        ("LT04_L1TP_193028_19890701_20161125_01_T1", "landsat5", ["B6"]),
        ("LE07_L1TP_193028_20050701_20161125_01_T1", "landsat7", ["B6_VCID_1", "B6_VCID_2"]),
    ],
)
def test_collection_1_of_landsat_4_to_7_is_read(tmp_path, product_id, kind, thermal):
    layers = ["B1", "B2", "B3", "B4", "B5", "B7", *thermal, "BQA"]
    layers += ["B8"] if kind == "landsat7" else []
    text = fake.mtl_collection1(product_id)
    product = read_product(fake.landsat_product(tmp_path, product_id, layers, text, "uint8"))
    assert product.sensor == kind
    assert names(product) == ("B1", "B2", "B3", "B4", "B5", "B7")
    assert physical(product, "B4") == pytest.approx((100 * 1e-3 - 0.003) / 0.5)
    assert product.acquired == datetime(2005, 7, 1, 9, 50, 0, 123456, tzinfo=UTC)
    assert product.notes == ("thermal bands left out, being radiance: B6",)


def test_level_2_of_landsat_7_has_its_temperature_in_band_6(tmp_path):
    product_id = "LE07_L2SP_193028_20050701_20200914_02_T1"
    layers = ["SR_B1", "SR_B2", "SR_B3", "SR_B4", "SR_B5", "SR_B7", "ST_B6"]
    product = read_product(fake.landsat_product(tmp_path, product_id, layers, None))
    assert names(product) == ("B1", "B2", "B3", "B4", "B5", "B6", "B7")
    assert physical(product, "B6") == pytest.approx(10000 * 0.00341802 + 149)
    assert not any("missing" in note for note in product.notes)


@pytest.mark.parametrize("prefix", ["", "scene_", "my fire.2020-"])
def test_surface_reflectance_of_landsat_is_known_by_the_names_of_files_alone(tmp_path, prefix):
    for number in range(2, 8):
        fake.write_band(tmp_path / "clip" / f"{prefix}SR_B{number}.TIF", 9000 + number)
    fake.write_band(tmp_path / "clip" / f"{prefix}QA_PIXEL.TIF")
    assert is_product(tmp_path / "clip")
    product = read_product(tmp_path / "clip")
    assert names(product) == ("B2", "B3", "B4", "B5", "B6", "B7")
    assert [file.band for file in product.files] == list(sensor("landsat8").bands)[1:7]
    assert product.name == (prefix.rstrip("_.- ") or "clip")
    assert product.doubts == ()
    assert not product.scaled
    assert product.coding is not None
    assert (product.coding.scale, product.coding.offset) == (2.75e-5, -0.2)
    assert read_product(tmp_path / "clip", raw=True).coding is None


def test_surface_reflectance_that_may_be_of_another_landsat_is_a_doubt(tmp_path):
    for number in (2, 3, 4):
        fake.write_band(tmp_path / "clip" / f"SR_B{number}.TIF", 9000)
    (doubt,) = read_product(tmp_path / "clip").doubts
    assert "assuming Landsat 8" in doubt
    assert "name the files by colour" in doubt


def test_landsat_9_counts_as_landsat_8(tmp_path):
    product_id = fake.L2_ID.replace("LC08", "LC09")
    product = read_product(fake.landsat_product(tmp_path, product_id, ["SR_B4"], None))
    assert product.sensor == "landsat8"
    assert "missing from the product: B1, B2, B3, B5, B6, B7, B10" in product.notes[0]


def test_surface_reflectance_of_collection_1_has_its_own_scale(tmp_path):
    product_id = "LC08_L1TP_193028_20180507_20180517_01_T1"
    layers = [f"sr_band{n}" for n in range(1, 8)]
    product = read_product(fake.landsat_product(tmp_path, product_id, layers, None))
    assert physical(product, "B4") == pytest.approx(1.0)
    assert {file.nodata for file in product.files} == {-9999}


def test_the_mtl_file_chooses_among_several_products(tmp_path):
    one = fake.landsat_level1(tmp_path)
    other = fake.L1_ID.replace("20200507", "20200523")
    for band in ("B2", "B3"):
        fake.write_band(one / f"{other}_{band}.TIF")
    (one / f"{other}_MTL.txt").write_text(fake.mtl(other))
    text = refusal(one)
    assert fake.L1_ID in text
    assert other in text
    assert names(read_product(one / f"{other}_MTL.txt")) == ("B2", "B3")


def test_level_1_without_mtl_is_refused_with_a_remedy(tmp_path):
    folder = fake.landsat_level1(tmp_path)
    (folder / f"{fake.L1_ID}_MTL.txt").unlink()
    text = refusal(folder)
    assert f"{fake.L1_ID}_MTL.txt" in text
    assert "Put it beside the bands" in text


def test_an_mtl_file_alone_or_of_another_scene_is_refused(tmp_path):
    folder = tmp_path / "alone"
    folder.mkdir()
    path = folder / f"{fake.L1_ID}_MTL.txt"
    path.write_text(fake.mtl())
    assert "no band files beside it" in refusal(path)
    assert "no band files beside it" in refusal(folder)
    fake.write_band(folder / f"{fake.L1_ID}_B2.TIF")
    path.write_text(fake.mtl(fake.L2_ID))
    assert "describes another product" in refusal(folder)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"scale": "NaN"}, "REFLECTANCE_MULT_BAND_1 is 'NaN'"),
        ({"scale": "-2e-5"}, "no usable number"),
        ({"scale": "1e999"}, "no usable number"),
        ({"scale": "two"}, "'two'"),
        ({"sun": "nan"}, "SUN_ELEVATION is 'nan'"),
        ({"sun": "-12.5"}, "-12.5 degrees"),
        ({"sun": "0"}, "taken by day"),
        ({"sun": "1e-320"}, "beyond all numbers"),
    ],
)
def test_an_mtl_with_unusable_numbers_is_refused(tmp_path, change, fact):
    assert fact in refusal(fake.landsat_level1(tmp_path, fake.mtl(**change)))


def test_an_mtl_that_lacks_or_contradicts_a_number_is_refused(tmp_path):
    text = fake.mtl()
    folder = fake.landsat_level1(tmp_path, text.replace("REFLECTANCE_MULT_BAND_3", "X"))
    assert "has no REFLECTANCE_MULT_BAND_3" in refusal(folder)
    twice = text.replace("    SUN_ELEVATION", "    SUN_ELEVATION = 1.0\n    SUN_ELEVATION")
    (folder / f"{fake.L1_ID}_MTL.txt").write_text(twice)
    assert "two values of SUN_ELEVATION" in refusal(folder)


# HLS


def test_hls_of_sentinel_2(tmp_path):
    product = read_product(fake.hls_product(tmp_path, "S30"))
    assert (product.sensor, names(product)) == ("sentinel2", ALL_S2)
    assert product.name == fake.HLS_ID.format(kind="S30")
    assert product.acquired == datetime(2024, 8, 30, 10, 5, 59, tzinfo=UTC)
    assert {f.nodata for f in product.files} == {-9999}
    assert physical(product, "B10") == pytest.approx(0.15)
    assert product.notes == ()


def test_hls_of_landsat_has_thermal_bands_in_kelvin(tmp_path):
    product = read_product(fake.hls_product(tmp_path, "L30"))
    assert product.sensor == "landsat8"
    assert names(product) == ("B1", "B2", "B3", "B4", "B5", "B6", "B7", "B9", "B10", "B11")
    assert physical(product, "B5") == pytest.approx(0.15)
    assert physical(product, "B10") == pytest.approx(15 + 273.15)
    assert product.notes == ()


# Files named by colour

STAC = ("blue", "green", "red", "nir", "nir08", "swir16", "swir22")


def colours(folder: Path, prefix: str = "", words: tuple[str, ...] = STAC, **facts) -> Path:
    for number, word in enumerate(words):
        fake.write_band(folder / f"{prefix}{word}.tif", 2000 + number, **facts)
    return folder


@pytest.mark.parametrize("prefix", ["", "S2A_20LMR_20220902_0_L2A_", "plot 7."])
def test_files_named_by_colour_are_the_bands_of_one_scene(tmp_path, prefix, caplog):
    folder = colours(tmp_path / "scene", prefix, scaling=(1e-4, -0.1), dtype="int16", nodata=-9999)
    for other in ("scl", "visual", "thumbnail"):
        fake.write_band(folder / f"{prefix}{other}.tif")
    (folder / "item.json").write_text("{}")
    assert is_product(folder)
    product = read_product(folder)
    assert names(product) == ("blue", "green", "red", "nir", "nir08", "swir1", "swir2")
    assert [file.path.stem.removeprefix(prefix) for file in product.files] == list(STAC)
    assert {(f.scale, f.offset, f.nodata, f.index) for f in product.files} == {
        (1e-4, -0.1, -9999, 1)
    }
    assert (product.sensor, product.acquired, product.scaled) == (None, None, True)
    assert product.bands_from == "file names"
    assert any("left out, not named by a colour" in n and "scl.tif" in n for n in product.notes)
    assert product.doubts == ()


def test_files_named_by_colour_without_tags_are_not_scaled(tmp_path):
    product = read_product(colours(tmp_path / "scene", words=("red", "nir")))
    assert {(file.scale, file.offset, file.nodata) for file in product.files} == {(1, 0, None)}
    assert not product.scaled
    assert product.name == "scene"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("rededge1", "red_edge_2", "Red-Edge-3"), ("rededge", "rededge2", "rededge3")),
        (("760nm", "600nm"), ("600nm", "760nm")),
        (("coastal_aerosol", "near_infrared"), ("coastal", "nir")),
    ],
)
def test_colours_may_be_spelled_in_many_ways(tmp_path, words, expected):
    assert names(read_product(colours(tmp_path, words=words))) == expected


@pytest.mark.parametrize(
    "words",
    [
        ("red",),
        ("red_river", "green_valley", "blue_lake"),
        ("a", "b", "g", "r"),
        ("red_2020", "nir_2021"),
        ("one_red", "two_red", "three_nir"),
        ("visual", "scl", "qa"),
    ],
)
def test_files_that_are_no_bands_of_one_scene_make_no_scene(tmp_path, words):
    colours(tmp_path, words=words)
    assert not is_product(tmp_path)
    assert "is a folder, but no" in refusal(tmp_path)


def test_what_is_not_one_band_each_is_refused(tmp_path):
    folder = colours(tmp_path / "double", words=("red", "swir1", "swir16"))
    assert "has swir1 twice: swir1.tif and swir16.tif" in refusal(folder)
    text = refusal(colours(colours(tmp_path / "two", "a_"), "b_"))
    assert "holds 2 products: a (bands named by colour), b (bands named by colour)" in text
    folder = colours(tmp_path / "many", words=("red", "nir"))
    write_scene(folder / "red.tif", np.ones((3, 4, 4), np.uint8), names=None)
    assert "red.tif has 3 bands; a file named by a colour has one" in refusal(folder)


def test_a_colour_that_is_a_link_out_of_the_folder_is_refused(tmp_path):
    folder = colours(tmp_path / "scene", words=("red", "nir"))
    (folder / "nir.tif").rename(tmp_path / "elsewhere.tif")
    (folder / "nir.tif").symlink_to(tmp_path / "elsewhere.tif")
    assert "is a link out of the product" in refusal(folder)


# What is no product, and what is meant to harm


def test_other_folders_and_files_are_no_products(tmp_path):
    np.save(tmp_path / "frame.npy", np.zeros(3))
    fake.write_band(tmp_path / "scene.tif")
    assert not is_product(tmp_path)
    assert not is_product(tmp_path / "scene.tif")
    assert not is_product(tmp_path / "absent")
    assert not is_product(tmp_path / ("x" * 5000))
    text = refusal(tmp_path)
    assert "is a folder, but no Sentinel-2, Landsat or HLS product" in text
    assert "no product metadata" in refusal(tmp_path / "scene.tif")
    assert "does not exist" in refusal(tmp_path / "absent")


def test_a_folder_around_a_product_points_to_it(tmp_path):
    safe = fake.safe_product(tmp_path, bands=["B02"])
    assert not is_product(tmp_path)
    assert f"Name the product in it: {safe}." in refusal(tmp_path)
    with pytest.raises(InputError, match="Name the product in it"):
        open_scene(tmp_path)
    fake.safe_product(tmp_path, "L1C", bands=["B02"])
    assert "Name one of the products in it" in refusal(tmp_path)


def test_a_folder_of_band_files_with_other_names_is_refused_with_the_way_to_a_scene(tmp_path):
    for number in range(3):
        fake.write_band(tmp_path / f"channel{number}.tif")
    text = refusal(tmp_path)
    assert "name the files by colour (red.tif)" in text
    assert "rio stack channel0.tif channel1.tif ... -o OUT.tif" in text
    assert text.endswith("--bands.")
    with pytest.raises(InputError, match="rio stack"):
        open_scene(tmp_path)


BOMB = '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY c "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "head",
    [
        BOMB,
        '<!DOCTYPE b [<!ENTITY x SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE b SYSTEM "http://127.0.0.1/evil.dtd">',
    ],
    ids=["bomb", "external entity", "external dtd"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_document_types_and_entities_are_refused(tmp_path, head, encoding):
    safe = fake.safe_product(tmp_path, bands=["B02"])
    xml = fake.s2_xml(head=head).replace("UTF-8", encoding)
    (safe / "MTD_MSIL2A.xml").write_bytes(xml.encode(encoding))
    assert "declares a document type" in refusal(safe)


@pytest.mark.parametrize(
    ("xml", "fact"),
    [
        (fake.s2_xml(quantification="nan"), "BOA_QUANTIFICATION_VALUE is 'nan'"),
        (fake.s2_xml(quantification="0"), "no usable number"),
        (fake.s2_xml(quantification="-10000"), "no usable number"),
        (fake.s2_xml(quantification="1e-320"), "beyond all numbers"),
        (fake.s2_xml(quantification_name="OTHER"), "has no BOA_QUANTIFICATION_VALUE"),
        (fake.s2_xml(offsets={1: "inf"}), "BOA_ADD_OFFSET of B02 is 'inf'"),
        (fake.s2_xml(offsets={13: "-1000"}), "of no band ('13')"),
        (fake.s2_xml(craft="Sentinel-3A"), "not of Sentinel-2"),
        (fake.s2_xml().replace("Level-2A_User", "Level-3_User"), "not the metadata"),
        (fake.s2_xml()[:400], "not usable XML"),
        ("<a>" * 200_000, "nested too deeply"),
        ("", "not usable XML"),
    ],
)
def test_metadata_that_cannot_be_right_is_refused(tmp_path, xml, fact):
    assert fact in refusal(fake.safe_product(tmp_path, bands=["B02"], xml=xml))


def test_metadata_too_large_is_refused(tmp_path):
    safe = fake.safe_product(tmp_path, bands=["B02"])
    with (safe / "MTD_MSIL2A.xml").open("r+b") as handle:
        handle.truncate(20_000_001)
    assert "larger than 20 MB" in refusal(safe)


def test_an_unreadable_time_is_said_and_not_made_up(tmp_path):
    for number, time in enumerate(("yesterday", "2024-08-30", "2024-13-01T00:00:00Z")):
        xml = fake.s2_xml(time=time)
        product = read_product(fake.safe_product(tmp_path / str(number), bands=["B02"], xml=xml))
        assert product.acquired is None
        assert "the time of acquisition is not known" in product.notes


def link_band(safe: Path, outside: Path) -> None:
    band = next(safe.glob("GRANULE/*/IMG_DATA/R10m/*_B02_10m.jp2"))
    band.rename(outside / band.name)
    band.symlink_to(outside / band.name)


def link_images(safe: Path, outside: Path) -> None:
    images = next(safe.glob("GRANULE/*/IMG_DATA"))
    images.rename(outside / "IMG_DATA")
    images.symlink_to(outside / "IMG_DATA", target_is_directory=True)


def link_metadata(safe: Path, outside: Path) -> None:
    path = safe / "MTD_MSIL2A.xml"
    path.rename(outside / path.name)
    path.symlink_to(f"../outside/{path.name}")


@pytest.mark.parametrize("link", [link_band, link_images, link_metadata])
def test_links_out_of_the_product_are_refused(tmp_path, link: Callable[[Path, Path], None]):
    safe = fake.safe_product(tmp_path, bands=["B02"])
    (tmp_path / "outside").mkdir()
    link(safe, tmp_path / "outside")
    assert "is a link out of the product" in refusal(safe)


def test_links_within_the_product_and_to_it_are_followed(tmp_path):
    safe = fake.safe_product(tmp_path, bands=["B02"])
    band = next(safe.glob("GRANULE/*/IMG_DATA/R10m/*_B02_10m.jp2"))
    band.rename(safe / "real.jp2")
    band.symlink_to(safe / "real.jp2")
    (tmp_path / "short").symlink_to(safe, target_is_directory=True)
    product = read_product(tmp_path / "short")
    assert names(product) == ("B02",)
    assert product.name == safe.name.removesuffix(".SAFE")


def test_names_in_the_metadata_lead_nowhere(tmp_path):
    # The fakes' metadata names ../../../etc as image; every path stays in the folder all the same.
    for folder in (fake.safe_product(tmp_path), fake.landsat_level1(tmp_path)):
        for file in read_product(folder).files:
            assert file.path.resolve().is_relative_to(folder.resolve())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_named_like_metadata_does_not_hang(tmp_path):
    folder = fake.landsat_level1(tmp_path)
    (folder / f"{fake.L1_ID}_MTL.txt").unlink()
    os.mkfifo(folder / f"{fake.L1_ID}_MTL.txt")
    assert "lacks" in refusal(folder)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    at=st.integers(0, 3000),
    cut=st.integers(0, 60),
    put=st.binary(max_size=12) | st.sampled_from([b"NaN", b"<", b"&lt;", b"\xff\xfe", b"1e400"]),
    which=st.sampled_from(["safe", "landsat"]),
)
def test_damaged_metadata_is_read_right_or_refused(tmp_path, at, cut, put, which):
    folder = tmp_path / which
    if not folder.exists():
        folder.mkdir()
        if which == "safe":
            fake.write_band(folder / "GRANULE" / "g" / "IMG_DATA" / "T_B02.jp2", gsd_m=10)
        else:
            fake.write_band(folder / f"{fake.L1_ID}_B2.TIF")
    text = (fake.s2_xml("L1C") if which == "safe" else fake.mtl()).encode()
    name = "MTD_MSIL1C.xml" if which == "safe" else f"{fake.L1_ID}_MTL.txt"
    (folder / name).write_bytes(text[:at] + put + text[at + cut :])
    try:
        (file,) = read_product(folder).files
    except InputError as error:
        refused = str(error)
    else:
        refused = ""
        assert math.isfinite(file.scale)
        assert file.scale > 0
        assert math.isfinite(file.offset)
    assert "\n" not in refused
