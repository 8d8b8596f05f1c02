"""The spellings of band names met in real files, and what each means."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smokegeo.bandnames import (
    guess_sensor,
    is_auxiliary,
    is_validity,
    only_counts,
    parse_band_name,
    sensor_clue,
)
from smokegeo.sensors import sensors

#: What a colour word may be off its usual centre, in nm.
COLOURS = {
    "coastal": (430, 455),
    "blue": (465, 495),
    "green_i": (525, 540),
    "green": (545, 570),
    "yellow": (600, 620),
    "red": (640, 670),
    "rededge": (700, 720),
    "rededge2": (735, 745),
    "rededge3": (778, 788),
    "nir": (820, 870),
    "nir08": (860, 870),
    "nir09": (935, 955),
    "cirrus": (1365, 1385),
    "swir1": (1600, 1650),
    "swir2": (2150, 2220),
    "mwir": (3500, 4500),
    "thermal": (10000, 11500),
    "thermal2": (11500, 12500),
}

WORDS = [
    # one word in the languages of the tools people use
    ("red", "red"),
    ("Red", "red"),
    (" RED ", "red"),
    ("R", "red"),
    ("rot", "red"),
    ("Rouge", "red"),
    ("rojo", "red"),
    ("green", "green"),
    ("Grün", "green"),
    ("gruen", "green"),
    ("vert", "green"),
    ("verde", "green"),
    ("blue", "blue"),
    ("Blau", "blue"),
    ("bleu", "blue"),
    ("azul", "blue"),
    ("B", "blue"),
    ("G", "green"),
    ("N", "nir"),
    ("yellow", "yellow"),
    ("gelb", "yellow"),
    # with something around it
    ("B02_blue", "blue"),
    ("Band 4 - Red", "red"),
    ("red_reflectance", "red"),
    ("Red (mean)", "red"),
    ("2023-05-14 green", "green"),
    # near infrared
    ("nir", "nir"),
    ("NIR", "nir"),
    ("Near Infrared", "nir"),
    ("near-infrared", "nir"),
    ("near_infra_red", "nir"),
    ("NearIR", "nir"),
    ("Near Infrared (NIR)", "nir"),
    ("infrared", "nir"),
    ("ir", "nir"),
    ("infra-rouge", "nir"),
    ("proche infrarouge", "nir"),
    ("proche infra-rouge", "nir"),
    ("PIR", "nir"),
    ("nahes Infrarot", "nir"),
    ("Nah-Infrarot", "nir"),
    ("infrarrojo cercano", "nir"),
    ("NIR narrow", "nir08"),
    ("narrow_nir", "nir08"),
    # STAC common names
    ("coastal", "coastal"),
    ("rededge", "rededge"),
    ("rededge071", "rededge"),
    ("rededge075", "rededge2"),
    ("rededge078", "rededge3"),
    ("nir08", "nir08"),
    ("nir09", "nir09"),
    ("cirrus", "cirrus"),
    ("swir16", "swir1"),
    ("swir22", "swir2"),
    ("lwir", "thermal"),
    ("lwir11", "thermal"),
    ("lwir12", "thermal2"),
    # Planet, MicaSense, Sentinel Hub, USGS
    ("coastal_blue", "coastal"),
    ("Coastal Aerosol", "coastal"),
    ("Ultra Blue", "coastal"),
    ("green_i", "green_i"),
    ("Green I", "green_i"),
    ("RedEdge", "rededge"),
    ("Red edge", "rededge"),
    ("red-edge-717", "rededge"),
    ("Red Edge 1", "rededge"),
    ("Red Edge 2", "rededge2"),
    ("Red Edge 3", "rededge3"),
    ("Vegetation Red Edge", "rededge"),
    ("SWIR1", "swir1"),
    ("SWIR-1", "swir1"),
    ("swir_2", "swir2"),
    ("SWIR 2190", "swir2"),
    ("SWIR", "swir1"),
    ("Short-wave infrared 1", "swir1"),
    ("shortwave infrared 2", "swir2"),
    # longer waves
    ("mwir", "mwir"),
    ("mid-wave infrared", "mwir"),
    ("thermal", "thermal"),
    ("Thermal Infrared", "thermal"),
    ("TIR", "thermal"),
    ("LWIR", "thermal"),
    ("long-wave infrared", "thermal"),
    ("infrarouge thermique", "thermal"),
    ("Thermisches Infrarot", "thermal"),
    ("FLIR temperature", "thermal"),
]


@pytest.mark.parametrize(("text", "colour"), WORDS)
def test_colour_words(text, colour):
    band = parse_band_name(text)
    assert band is not None
    assert band.name == colour
    low, high = COLOURS[colour]
    assert low <= band.wavelength_nm <= high
    assert band.fwhm_nm > 0


WAVELENGTHS = [
    ("760nm", 760, None),
    ("760 nm", 760, None),
    ("760.5NM", 760.5, None),
    ("760,5 nm", 760.5, None),
    ("713 Nanometers", 713, None),
    ("713 nanomètres", 713, None),
    ("0.76um", 760, None),
    ("0.76 \u00b5m", 760, None),  # micro sign
    ("0.76 \u03bcm", 760, None),  # Greek mu
    ("0,76 Mikrometer", 760, None),
    ("1.61 microns", 1610, None),
    ("10.9 micrometres", 10900, None),
    ("band 19 (0.513 Micrometers)", 513, None),
    ("Band 1 (600.0 Nanometers)", 600, None),
    ("600.0 Nanometers", 600, None),
    ("a (0.616 MICROMETERS)", 616, None),
    ("20230514 60m: B9 945nm", 945, None),
    ("B8, central wavelength 842 nm", 842, None),
    ("B9,945nm", 945, None),
    ("wavelength_760nm", 760, None),
    ("760nm_reflectance", 760, None),
    ("Red - 668 nm", 668, None),
    ("B8-842nm", 842, None),
    # a pass-band gives centre and width
    ("Blue (450-515nm)", 482.5, 65),
    ("Band 4 Red (0.64 - 0.67 \u00b5m)", 655, 30),
    ("0.85\u20130.88 \u03bcm", 865, 30),
    ("851 to 879 nm", 865, 28),
]


@pytest.mark.parametrize(("text", "centre", "width"), WAVELENGTHS)
def test_stated_wavelengths(text, centre, width):
    band = parse_band_name(text)
    assert band.wavelength_nm == pytest.approx(centre)
    assert band.fwhm_nm == (None if width is None else pytest.approx(width))
    assert band.name == f"{centre:g}nm"


NO_COLOUR = [
    # quality, masks, classes
    *("BQA", "QA_PIXEL", "QA_RADSAT", "QA60", "SR_QA_AEROSOL", "sr_aerosol", "ST_QA", "pixel_qa"),
    *("SCL", "Fmask", "cloud_mask", "red_mask", "quality", "UDM2", "MSK_CLDPRB", "AOT", "WVP"),
    # heights, angles, indices
    *("DEM", "dem_10m", "elevation", "slope", "VAA", "view zenith angle", "NDVI", "ndvi (nir-red)"),
    # all colours at once
    *("pan", "PAN", "Panchromatic", "B8 pan"),
    # MODIS, ASTER, VIIRS, Hyperion, Sentinel-1 and -3
    *("sur_refl_b01", "Nadir_Reflectance_Band1", "VNIR_Band1", "B3N", "M5", "B008", "VV", "VH"),
    "Oa08_radiance",
    # infrared, but which?
    *("mid infrared", "color infrared", "swir5", "swir_1240", "swir2390", "infra-red imagery"),
    # words that only contain a colour
    *(
        "reduced",
        "rotation",
        "protein",
        "converted",
        "vertical",
        "entire",
        "greenness",
        "bluetooth",
    ),
    *("sacred", "unir", "scattered", "hundred"),
    # nothing
    *("", " ", "Band 1", "Layer_1", "Gray", "alpha", "3nm step", "10m", "60 m", "2023"),
]


@pytest.mark.parametrize("text", NO_COLOUR)
def test_what_is_no_spectral_band_is_not_read_as_one(text):
    assert parse_band_name(text) is None


@pytest.mark.parametrize("text", ["QA_PIXEL", "SCL", "DEM", "pan", "B8 pan", "B4_mask", "B10_QA"])
@pytest.mark.parametrize("sensor", ["sentinel2", "landsat8"])
def test_layers_beside_the_bands_stay_out_even_with_a_sensor(text, sensor):
    assert is_auxiliary(text)
    assert parse_band_name(text, sensor) is None


@pytest.mark.parametrize(
    "text",
    [
        *("alpha", "Alpha", "A", "Alphakanal", "canal alpha", "Transparenz", "opacity"),
        *("mask", "dataMask", "valid_mask", "nodata mask", "validity"),
    ],
)
def test_words_for_which_pixels_are_there(text):
    assert is_validity(text)


@pytest.mark.parametrize(
    "text", ["", "T", "IR", "nir", "cloud_mask", "QA", "SCL", "heat", "Band 4"]
)
def test_other_words_do_not_say_which_pixels_are_there(text):
    assert not is_validity(text)


NUMBERED = [
    ("B02", "sentinel2", "B02"),
    ("B2", "sentinel2", "B02"),
    ("b8a", "sentinel2", "B8A"),
    ("B08A", "sentinel2", "B8A"),
    ("B8", "sentinel2", "B08"),
    ("Band 12", "sentinel2", "B12"),
    ("B02_blue", "sentinel2", "B02"),
    ("T32UQD_20230514T101559_B04_10m", "sentinel2", "B04"),
    ("T32UQD_20230514T101559_B8A", "sentinel2", "B8A"),
    ("20230514 60m: B9 945nm", "sentinel2", "B09"),
    ("Band 1 - Coastal aerosol", "sentinel2", "B01"),
    ("B8A nir", "sentinel2", "B8A"),
    ("Band 5 - NIR", "landsat8", "B5"),
    ("Band 1 - Blue", "landsat7", "B1"),
    ("B8, central wavelength 842 nm", "sentinel2", "B08"),
    ("HLS.S30.T10SEJ.2021001T185801.v2.0.B8A", "sentinel2", "B8A"),
    ("HLS.L30.T10SEJ.2021001T183000.v2.0.B05", "landsat8", "B5"),
    ("SR_B4", "landsat8", "B4"),
    ("ST_B10", "landsat8", "B10"),
    ("sr_band4", "landsat8", "B4"),
    ("LC08_L1TP_044034_20220101_20220106_02_T1_B5", "landsat8", "B5"),
    ("LC80440342014077LGN00_B5.TIF", "landsat8", "B5"),
    ("B6_VCID_1", "landsat7", "B6"),
    ("LE07_L2SP_044034_20020101_02_T1_SR_B3", "landsat7", "B3"),
    ("LT05_L1TP_044034_19900101_20200916_02_T1_B7", "landsat5", "B7"),
]


@pytest.mark.parametrize(("text", "sensor", "name"), NUMBERED)
def test_a_number_is_that_band_of_the_sensor(text, sensor, name):
    preset = sensors()[sensor].bands
    assert parse_band_name(text, sensor) == preset[preset.index(name)]


@pytest.mark.parametrize(
    ("text", "sensor", "centre"),
    [
        ("B05_nir", "sentinel2", 845),  # HLS Landsat file taken for Sentinel-2
        ("B5 1650nm", "landsat8", 1650),
        ("band 2 (0.8 Micrometers)", "landsat8", 800),
        ("Band 1 - Blue", "sentinel2", 480),  # whose B01 is coastal, and reaches into blue
        ("B1 blue", "landsat8", 480),
        ("Band 1 Blue (450-515nm)", "landsat8", 482.5),
    ],
)
def test_a_number_that_contradicts_the_text_loses(text, sensor, centre):
    assert parse_band_name(text, sensor).wavelength_nm == centre


def test_a_number_the_sensor_does_not_have_means_nothing():
    assert parse_band_name("B13", "sentinel2") is None
    assert parse_band_name("B8A", "landsat8") is None


def spell(pattern, *numbers):
    return [pattern.format(n) for n in numbers]


S2 = spell("B{}", 1, 2, 3, 4, 5, 6, 7, 8, "8A", 9, 11, 12)

SENSORS = [
    # Earth Engine
    ("S2 SR", S2, {}, "", "sentinel2", False),
    ("S2 SR with extras", [*S2, "AOT", "WVP", "SCL", "QA60"], {}, "", "sentinel2", False),
    ("S2 RGB+NIR", spell("B{}", 4, 3, 2, 8), {}, "", "sentinel2", True),
    ("L8 TOA", [*spell("B{}", *range(1, 12)), "BQA"], {}, "", "landsat8", True),
    ("L8 C2", [*spell("SR_B{}", *range(1, 8)), "ST_B10"], {}, "", "landsat8", False),
    ("L7 C2", [*spell("SR_B{}", 1, 2, 3, 4, 5, 7), "ST_B6"], {}, "", "landsat7", False),
    ("L5 C2, no thermal", spell("SR_B{}", 1, 2, 3, 4, 5, 7), {}, "", "landsat7", False),
    ("C2, three bands", spell("SR_B{}", 2, 3, 4), {}, "", "landsat8", True),
    ("C2, for NBR", spell("SR_B{}", 5, 7), {}, "", "landsat8", True),
    ("L8 C1", spell("sr_band{}", *range(1, 8)), {}, "", "landsat8", False),
    ("L8, run together", spell("SRB{}", *range(1, 8)), {}, "", "landsat8", False),
    ("L8, padded", spell("SR_B0{}", *range(1, 8)), {}, "", "landsat8", False),
    ("L8, in words", spell("SR_Band{}", *range(1, 8)), {}, "", "landsat8", False),
    ("L7 C1", spell("sr_band{}", 1, 2, 3, 4, 5, 7), {}, "", "landsat7", False),
    ("L7 heat, padded", ["SR_B05", "ST_B06"], {}, "", "landsat7", False),
    ("L7 TOA", ["B1", "B6_VCID_1", "B6_VCID_2"], {}, "", "landsat7", False),
    ("L5, without heat", spell("B{}", 1, 2, 3, 4, 5, 7), {}, "", "landsat7", True),
    ("L5, any order", spell("B{}", 7, 5, 4, 3, 2, 1), {}, "", "landsat7", True),
    ("RGB", spell("B{}", 4, 3, 2), {}, "", "landsat8", True),  # false colour on Landsat 5
    ("RGB", spell("B{}", 4, 3, 2), {}, "LC08_x.tif", "landsat8", False),
    ("S2, no B12", spell("B{}", 2, 3, 4, 8, 11), {}, "", "sentinel2", False),
    # padded as in SAFE folders, or HLS
    ("SAFE", spell("B{}", "02", "03", "04", "08"), {}, "", "sentinel2", False),
    ("padded RGB", spell("B{}", "04", "03", "02"), {}, "", "sentinel2", False),
    ("like HLS L30", spell("B0{}", 2, 3, 4, 5, 6, 7), {}, "", "sentinel2", True),
    ("HLS L30", spell("B0{}", 2, 3, 4, 5), {}, "HLS.L30.T10SEJ.v2.0.tif", "landsat8", False),
    ("HLS S30", spell("B0{}", 2, 3, 4, 5), {}, "HLS.S30.T10SEJ.v2.0.tif", "sentinel2", False),
    ("HLSL30", ["B05"], {"product": "HLSL30 v2"}, "", "landsat8", False),
    # file names
    ("USGS L8", ["B5"], {}, "LC08_L1TP_044034_20220101_20220106_02_T1.TIF", "landsat8", False),
    ("USGS L9", ["B5"], {}, "LC09_L2SP_044034_20220101_20220106_02_T1.TIF", "landsat8", False),
    ("old USGS L8", ["B5"], {}, "LC80440342014077LGN00.tif", "landsat8", False),
    ("USGS L7", ["B5"], {}, "LE07_L1TP_044034_20020101_02_T1.TIF", "landsat7", False),
    ("USGS L5", ["B5"], {}, "LT05_L1TP_044034_19900101_02_T1.TIF", "landsat5", False),
    ("USGS L4", ["B5"], {}, "LT04_L1TP_044034_19900101_02_T1.TIF", "landsat5", False),
    ("SAFE name", ["B5"], {}, "S2B_MSIL2A_20230514T101559.tif", "sentinel2", False),
    ("JP2 name", ["B11"], {}, "T32UQD_20230514T101559_B11_20m.jp2", "sentinel2", False),
    ("EE id", ["B11"], {}, "20230514T101559_20230514T102029_T32UQD.tif", "sentinel2", False),
    # descriptions that are file names, and tags
    ("named after files", ["LT05_044034_B4", "LT05_044034_B3"], {}, "", "landsat5", False),
    ("tag", ["B5"], {"SPACECRAFT_ID": "LANDSAT_9"}, "", "landsat8", False),
    ("tag", ["B5"], {"SENSOR_ID": "OLI_TIRS"}, "", "landsat8", False),
    ("tag", ["B5"], {"SENSOR_ID": "ETM"}, "", "landsat7", False),
    ("tag", ["B5"], {"SENSOR_ID": "TM"}, "", "landsat5", False),
    ("tag", ["B5"], {"SPACECRAFT_NAME": "Sentinel-2A"}, "", "sentinel2", False),
    # names that only look like a clue
    ("no Landsat", S2, {}, "bolivia_B.tif", "sentinel2", False),
    ("no Landsat", S2, {}, "result5_napoli.tif", "sentinel2", False),
    ("no Landsat", S2, {"crs": "ETRS89 / TM35FIN", "note": "UTM"}, "", "sentinel2", False),
    # numbers of other sensors, and mere counting
    ("MODIS", spell("sur_refl_b0{}", 1, 2, 3), {}, "", None, False),
    ("MODIS", ["B1", "B2"], {}, "MOD09GA.A2023134.h18v04.tif", None, False),
    ("MCD43", spell("Nadir_Reflectance_Band{}", 1, 2, 3), {}, "", None, False),
    ("AHI", spell("B0{}", 1, 2, 3, 4), {}, "HS_H09_20230514_0300_FLDK.tif", None, False),
    ("AHI", spell("B0{}", 1, 2, 3, 4), {"instrument": "AHI"}, "", None, False),
    ("AHI", spell("B0{}", 1, 2, 3, 4), {}, "Himawari-9.tif", None, False),
    ("ABI", spell("B0{}", 1, 2, 3), {}, "OR_ABI-L2-MCMIPC-M6_G16.tif", None, False),
    ("ABI", spell("B0{}", 1, 2, 3), {"platform": "GOES-16"}, "", None, False),
    ("no GOES", spell("B0{}", 2, 3, 4), {"note": "it goes on"}, "", "sentinel2", False),
    ("ASTER", spell("VNIR_Band{}", 1, 2), {}, "", None, False),
    ("Hyperion", spell("B0{}", "08", "12", "40"), {}, "", None, False),
    ("Landsat MSS", spell("B{}", 4, 5, 6, 7), {}, "LM05_L1TP_044034.tif", None, False),
    ("many bands", spell("B{}", *range(1, 26)), {}, "", None, False),
    ("counted", spell("Band {}", 1, 2, 3), {}, "", None, False),
    ("counted", spell("Band_{}", 1, 2, 3, 4), {}, "", None, False),
    ("counted", spell("band {} (0.6 Micrometers)", 2, 3, 4), {}, "", None, False),
    # a word about the sensor does not make a count its band numbers
    ("counted S2", spell("Band {}", *range(1, 7)), {}, "S2_x.tif", None, False),
    ("counted S2", spell("Band_{}", *range(1, 7)), {}, "sentinel2_x.tif", None, False),
    ("counted S2", spell("Band {}", *range(1, 14)), {}, "S2_x.tif", None, False),
    ("counted S2", spell("x_Band_{}", *range(1, 7)), {}, "S2_x.tif", None, False),
    ("counted S2", spell("B{}", *range(1, 14)), {}, "S2_x.tif", None, False),
    ("counted L8", spell("Band {}", *range(1, 7)), {}, "LC08_x.tif", None, False),
    ("counted, tag", spell("band{}", *range(1, 7)), {"sensor": "Landsat 8"}, "", None, False),
    ("counted, mask", [*spell("Band {}", 1, 2, 3), "QA"], {}, "S2_x.tif", None, False),
    ("counted words", ["Band 1 - Blue", "Band 2 - Green"], {}, "S2_x.tif", None, False),
    ("own words", ["Band 1 - Coastal", "Band 2 - Blue"], {}, "LC08_x.tif", "landsat8", False),
    ("own order", spell("Band {}", 2, 3, 4, 8), {}, "S2_x.tif", "sentinel2", False),
    ("Landsat's name", spell("toa_band{}", 1, 2, 3, 4), {}, "LC08_x.tif", "landsat8", False),
    ("not numbered", ["red", "green", "blue"], {}, "LC08_x.tif", None, False),
    ("nothing", ["", ""], {}, "S2A_x.tif", None, False),
]


@pytest.mark.parametrize(
    ("texts", "tags", "filename", "sensor", "doubtful"),
    [pytest.param(*r[1:], id=r[0]) for r in SENSORS],
)
def test_numbers_and_clues_tell_the_sensor(texts, tags, filename, sensor, doubtful):
    hint = guess_sensor(texts, tags, filename)
    assert hint.name == sensor
    assert (hint.warning is not None) is doubtful


def test_a_doubtful_sensor_is_named_in_the_warning():
    hint = guess_sensor(["B5", "B6"])
    assert hint.warning == (
        "band numbers without a sensor; assuming Landsat 8/9 OLI and TIRS with B5 at 865 nm, "
        "B6 at 1609 nm (say --sensor if not)"
    )


@pytest.mark.parametrize(
    ("texts", "filename", "counting"),
    [
        (spell("b{}", 1, 2, 3), "", True),
        (spell("B{}", *range(1, 7)), "x.tif", True),
        ([*spell("b{}", 1, 2, 3), "cloud_mask", "alpha"], "", True),
        (spell("B{}", *range(1, 8)), "", False),  # the sunlight of Landsat 8
        ([*spell("B{}", *range(1, 12)), "BQA"], "", False),  # all of it
        (spell("B{}", 1, 2, 3), "LC08_x.tif", False),
        (spell("B{}", 1, 2, 3), "MOD09GA.tif", False),
        (spell("B{}", 1, 2, 4), "", False),
        (spell("B{}", 3, 2, 1), "", False),
        (spell("B0{}", 1, 2, 3), "", False),
        (["B1", "red"], "", False),
        (["", ""], "", False),
    ],
)
def test_names_b1_b2_b3_only_count_unless_they_may_be_landsat_s(texts, filename, counting):
    assert only_counts(texts, {}, filename) is counting


def test_a_word_gives_the_sensor_away_without_any_band_number():
    assert sensor_clue(filename="S2A_x.tif") == "sentinel2"
    assert sensor_clue(["red"], {"SPACECRAFT_ID": "LANDSAT_9"}) == "landsat8"
    assert sensor_clue(filename="MOD09GA.tif") is None
    planet = "20230514_101559_12_2415_3B_AnalyticMS{}_clip.tif"
    for ending, name in (("", 4), ("_SR", 4), ("_8b", 8), ("_SR_8b_harmonized", 8)):
        assert sensor_clue(filename=planet.format(ending)) == f"planetscope{name}"
    assert sensor_clue(["B8A"], filename="x.tif") is None


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=30), st.sampled_from([None, "sentinel2", "landsat8", "hss"]))
def test_any_text_is_a_valid_band_or_none(text, sensor):
    band = parse_band_name(text, sensor)
    assert band is None or 200 <= band.wavelength_nm <= 20000
    guess_sensor([text, text], {"a": text}, text)
