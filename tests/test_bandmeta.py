"""Which bands a raster has, from whatever its metadata says; with real GeoTIFF and ENVI files."""

import warnings

import numpy as np
import pytest
import rasterio
from rasterio.enums import ColorInterp
from rasterio.errors import RasterioError
from toy_scenes import damage_block, write_scene

from smokegeo.bandmeta import read_bands
from smokegeo.bands import match_bands
from smokegeo.errors import InputError, UsageError
from smokegeo.rastermeta import RasterMeta, raster_meta
from smokegeo.sensors import sensor

pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")


def imagery(*micrometres, fwhm=None):
    """IMAGERY tags, one set per band; None for a band without wavelength."""
    out = []
    for value in micrometres:
        tags = {} if value is None else {"CENTRAL_WAVELENGTH_UM": value}
        if fwhm is not None and value is not None:
            tags["FWHM_UM"] = fwhm
        out.append(tags)
    return tuple(out)


def rounded(reading):
    return [None if nm is None else round(nm) for nm in reading.bands.wavelengths_nm]


class TestOrder:
    """Each source of knowledge gives way to the one before it."""

    full = RasterMeta(
        descriptions=("B4", "B3", "B2"),
        colours=("red", "green", "blue"),
        imagery=imagery("0.700", "0.600", "0.500"),
        envi={"wavelength": "{701, 601, 501}", "wavelength_units": "Nanometers"},
    )

    def test_explicit_bands_come_first(self):
        reading = read_bands(self.full, bands="450nm,550nm,650nm")
        assert (rounded(reading), reading.source) == ([450, 550, 650], "explicit choice")

    def test_explicit_sensor_comes_first(self):
        reading = read_bands(self.full, sensor="landsat5")
        assert (rounded(reading), reading.source) == ([830, 660, 560], "explicit choice")

    def test_then_imagery(self):
        reading = read_bands(self.full)
        assert (rounded(reading), reading.source) == ([700, 600, 500], "IMAGERY metadata")

    def test_then_envi(self):
        meta = RasterMeta(self.full.descriptions, self.full.colours, envi=self.full.envi)
        reading = read_bands(meta)
        assert (rounded(reading), reading.source) == ([701, 601, 501], "ENVI wavelength")

    def test_then_descriptions(self):
        reading = read_bands(RasterMeta(self.full.descriptions, self.full.colours))
        assert (rounded(reading), reading.source) == ([655, 561, 482], "band descriptions")

    def test_then_colours(self):
        reading = read_bands(RasterMeta((None,) * 3, ("blue", "green", "red")))
        assert reading.bands.names == ("blue", "green", "red")
        assert (reading.source, reading.warnings) == ("colour interpretation", ())

    def test_last_the_count_with_a_warning(self):
        reading = read_bands(RasterMeta((None,) * 6, ("gray", *["undefined"] * 5)))
        assert reading.bands.bands == sensor("satellite").bands.bands
        assert reading.source == "band count"
        assert "assuming blue, green, red, near infrared" in reading.warnings[0]


class TestExplicit:
    def test_a_sensor_with_all_bands_takes_them_in_order(self):
        reading = read_bands(RasterMeta((None,) * 13), sensor="Sentinel-2")
        assert reading.bands == sensor("sentinel2").bands
        assert reading.indexes == tuple(range(1, 14))

    def test_a_sensor_with_all_bands_described_in_another_order_obeys_the_descriptions(self):
        names = tuple(reversed(sensor("sentinel2").bands.names))
        reading = read_bands(RasterMeta(names), sensor="s2")
        assert reading.bands.names == names
        assert reading.bands.sensor == "sentinel2"

    def test_a_sensor_with_some_bands_needs_descriptions(self):
        reading = read_bands(RasterMeta(("B8", "B4", "QA60")), sensor="sentinel2")
        assert reading.bands.names == ("B08", "B04", "QA60")
        assert rounded(reading) == [833, 665, None]
        with pytest.raises(InputError, match=r"x\.tif has 2 bands, Sentinel-2 .* band 2 is") as e:
            read_bands(RasterMeta(("B8", None), filename="x.tif"), sensor="sentinel2")
        assert "--bands" in str(e.value)

    @pytest.mark.parametrize("names", [(None,) * 12, tuple(f"Band {i}" for i in range(1, 13))])
    def test_twelve_bands_of_sentinel_2_are_those_of_level_2a(self, names):
        reading = read_bands(RasterMeta(names), sensor="sentinel2")
        assert reading.bands.names == tuple(
            b for b in sensor("sentinel2").bands.names if b != "B10"
        )
        assert reading.bands.sensor == "sentinel2"
        assert "12 bands are taken for B01, B02" in reading.notes[0]

    @pytest.mark.parametrize(
        ("name", "count", "last"),
        [
            ("landsat8", 7, "B7"),
            ("landsat7", 6, "B7"),
            ("landsat5", 6, "B7"),
            ("landsat7", 7, "B7"),
        ],
    )
    def test_usual_stacks_of_landsat_need_no_names(self, name, count, last):
        names = read_bands(RasterMeta((None,) * count), sensor=name).bands.names
        assert (names[0], names[-1]) == ("B1", last)

    @pytest.mark.parametrize(("name", "last"), [("rededge_mx", ""), ("altum", ", thermal")])
    def test_the_order_of_micasense_s_cameras_is_told_with_that_of_exports(self, name, last):
        reading = read_bands(RasterMeta((None,) * len(sensor(name).bands)), sensor=name)
        assert reading.bands == sensor(name).bands
        (note,) = reading.notes
        assert f"are taken for blue, green, red, nir, rededge{last}, in this order" in note
        assert note.endswith(f"--bands, such as blue,green,red,rededge,nir{last.replace(' ', '')}")
        assert read_bands(RasterMeta((None,) * 13), sensor="sentinel2").notes == ()

    def test_names_that_only_count_are_not_the_sensors(self):
        names = tuple(f"Band {i}" for i in range(1, 7))
        with pytest.raises(InputError, match="nothing says which one band 1 is") as e:
            read_bands(RasterMeta(names), sensor="sentinel2")
        assert "--bands B01,B02,B03,..." in str(e.value)
        thirteen = read_bands(RasterMeta(tuple(f"Band {i}" for i in range(1, 14))), sensor="s2")
        assert thirteen.bands == sensor("sentinel2").bands

    def test_numbers_that_may_only_count_are_doubted(self):
        names = tuple(f"B{i}" for i in range(1, 13))
        reading = read_bands(RasterMeta(names), sensor="sentinel2")
        assert "if the names only count" in reading.warnings[0]

    def test_an_unknown_sensor_is_refused(self):
        with pytest.raises(UsageError, match="is not known"):
            read_bands(RasterMeta((None,)), sensor="hubble")

    def test_band_names_are_understood_in_any_spelling(self):
        reading = read_bands(RasterMeta((None,) * 4), bands="red, nir,760nm , B11")
        assert rounded(reading)[:3] == [655, 845, 760]

    def test_band_names_of_a_sensor_may_be_unpadded(self):
        reading = read_bands(RasterMeta((None,) * 2), sensor="S2", bands="B2,b8a")
        assert reading.bands.names == ("B02", "B8A")
        assert reading.bands.sensor == "sentinel2"
        with pytest.raises(UsageError, match="no band 'B13'"):
            read_bands(RasterMeta((None,) * 2), sensor="S2", bands="B2,B13")

    def test_a_guess_behind_explicit_numbers_is_told(self):
        reading = read_bands(RasterMeta((None,) * 2), bands="B5,B6")
        assert rounded(reading) == [865, 1609]
        assert "assuming Landsat 8/9" in reading.warnings[0]

    def test_a_name_that_means_nothing_is_kept_and_told(self):
        reading = read_bands(RasterMeta((None,) * 2), bands="red,height")
        assert reading.bands.names == ("red", "height")
        assert reading.warnings == ("band height is not understood",)

    def test_the_number_of_names_must_fit(self):
        with pytest.raises(UsageError, match="names 2 bands, the raster has 3"):
            read_bands(RasterMeta((None,) * 3), bands="red,green")

    def test_names_may_include_an_alpha_band_or_leave_it_out(self):
        meta = RasterMeta((None,) * 4, ("red", "green", "blue", "alpha"))
        assert read_bands(meta, bands="red,green,blue").indexes == (1, 2, 3)
        assert read_bands(meta, bands="red,green,blue,nir").indexes == (1, 2, 3, 4)

    def test_a_name_given_twice_is_refused(self):
        with pytest.raises(UsageError, match="--bands names red twice; put - for each band"):
            read_bands(RasterMeta((None,) * 2), bands="red,Red")

    def test_a_dash_leaves_a_band_out(self):
        meta = RasterMeta((None,) * 6)
        reading = read_bands(meta, bands="red,green,-,nir,-,-")
        assert (reading.bands.names, reading.indexes) == (("red", "green", "nir"), (1, 2, 4))
        reading = read_bands(meta, sensor="sentinel2", bands="B4,-,B3,-,-,-")
        assert (reading.bands.names, reading.indexes) == (("B04", "B03"), (1, 3))
        with pytest.raises(UsageError, match="leaves out all bands"):
            read_bands(meta, bands="-,-,-,-,-,-")

    def test_numbers_are_wavelengths(self):
        reading = read_bands(RasterMeta((None,) * 3), bands="490,560,-")
        assert (rounded(reading), reading.warnings) == ([490, 560], ())


class TestImagery:
    def test_gives_centre_width_and_the_description_as_name(self):
        meta = RasterMeta(("B4", "", None), imagery=imagery("0.665", "0.7405", "10.9", fwhm="0.03"))
        reading = read_bands(meta)
        assert reading.bands.names == ("B4", "740.5nm", "10900nm")
        assert reading.bands.wavelengths_nm == (665, 740.5, 10900)
        assert [band.fwhm_nm for band in reading.bands] == [30, 30, 30]

    def test_a_band_without_wavelength_keeps_its_name(self):
        meta = RasterMeta(("B4", "SCL", None, "nir"), imagery=imagery("0.665", None, None, None))
        reading = read_bands(meta)
        assert reading.bands.names == ("B4", "SCL", "band 3", "nir")
        assert rounded(reading) == [665, None, None, 845]

    @pytest.mark.parametrize("rubbish", ["", "n/a", "nan", "-1", "0", "inf"])
    def test_rubbish_is_no_wavelength(self, rubbish):
        reading = read_bands(RasterMeta(("red", "nir"), imagery=imagery(rubbish, rubbish)))
        assert reading.source == "band descriptions"

    def test_repeated_names_are_told_apart(self):
        meta = RasterMeta(("red", "RED", "x"), imagery=imagery("0.65", "0.66", "0.7"))
        assert read_bands(meta).bands.names == ("red #1", "RED #2", "x")


class TestEnvi:
    @pytest.mark.parametrize(
        "unit",
        ["Nanometers", "nanometers", "NANOMETERS", " nm ", "Unknown", "", None],
    )
    def test_nanometres(self, unit):
        envi = {"wavelength": "{600.0 , 616.5,\n 632}"}
        if unit is not None:
            envi["wavelength_units"] = unit
        assert read_bands(RasterMeta((None,) * 3, envi=envi)).bands.wavelengths_nm == (
            600,
            616.5,
            632,
        )

    @pytest.mark.parametrize(
        "unit", ["Micrometers", "MICROMETERS", "um", "\u00b5m", "\u03bcm", "Microns", "Unknown", ""]
    )
    def test_micrometres(self, unit):
        envi = {"wavelength": "{0.6, 0.6165, 2.2}", "wavelength_units": unit, "fwhm": "{.01,.01,1}"}
        reading = read_bands(RasterMeta((None,) * 3, envi=envi))
        assert reading.bands.wavelengths_nm == (600, 616.5, 2200)
        assert [band.fwhm_nm for band in reading.bands] == [10, 10, 1000]

    @pytest.mark.parametrize("key", ["wavelength_units", "wavelength units", "Wavelength_Units"])
    def test_unit_key_in_any_spelling(self, key):
        envi = {"Wavelength": "{6000, 7000}", key: "Angstroms"}
        assert read_bands(RasterMeta((None,) * 2, envi=envi)).bands.wavelengths_nm == (600, 700)

    @pytest.mark.parametrize("unit", ["Index", "Wavenumber", "GHz", "MHz"])
    def test_counters_and_frequencies_are_no_wavelengths(self, unit):
        envi = {"wavelength": "{1, 2}", "wavelength_units": unit}
        assert read_bands(RasterMeta((None,) * 2, envi=envi)).source == "band count"

    @pytest.mark.parametrize("marks", ["{1, 0, 1}", "{1,0.0,1}"])
    def test_bands_marked_bad_have_no_wavelength(self, marks):
        envi = {"wavelength": "{600, 616, 632}", "bbl": marks}
        reading = read_bands(RasterMeta(("a", "616 nm", "c"), envi=envi))
        assert reading.bands.wavelengths_nm == (600, None, 632)
        assert reading.bands.names[1] == "bad band 2"
        (note,) = reading.notes
        assert note.startswith("1 of 3 bands are marked bad")

    @pytest.mark.parametrize("marks", ["{1, 1, 1}", "{0, 0, 0}", "{1, 0}", "", "{a, b, c}"])
    def test_a_list_of_bad_bands_that_says_nothing_changes_nothing(self, marks):
        envi = {"wavelength": "{600, 616, 632}", "bbl": marks}
        reading = read_bands(RasterMeta((None,) * 3, envi=envi))
        assert (reading.bands.wavelengths_nm, reading.notes) == ((600, 616, 632), ())

    @pytest.mark.parametrize("text", ["{600, 616}", "{}", "", "{a, b, c}"])
    def test_a_list_that_does_not_fit_is_ignored(self, text):
        reading = read_bands(RasterMeta((None,) * 3, envi={"wavelength": text}))
        assert reading.source == "band count"


#: (what, descriptions, file name, expected centres in nm; None = no spectral band)
DESCRIBED = [
    ("S2 SAFE", ("B02", "B03", "B04", "B08"), "", (492, 560, 665, 833)),
    (
        "S2 EE",
        ("B2", "B3", "B4", "B8A", "B11", "B12", "SCL"),
        "",
        (492, 560, 665, 865, 1614, 2202, None),
    ),
    ("S2 GDAL", ("B4, central wavelength 665 nm", "B8, central wavelength 842 nm"), "", (665, 842)),
    ("S2 CDSE", ("20230514 60m: B9 945nm", "20230514 60m: B1 443nm"), "", (945, 443)),
    ("S2 + word", ("B02_blue", "B03_green", "B04_red", "B08_nir"), "", (492, 560, 665, 833)),
    (
        "L8 C2 EE",
        ("SR_B4", "SR_B5", "SR_B6", "ST_B10", "QA_PIXEL"),
        "",
        (655, 865, 1609, 10895, None),
    ),
    ("L7 C2 EE", ("SR_B1", "SR_B4", "SR_B5", "ST_B6", "SR_B7"), "", (478, 835, 1648, 11335, 2205)),
    ("USGS LC08", ("B2", "B5", "BQA"), "LC08_L1TP_044034_20220101.TIF", (482, 865, None)),
    ("USGS LE07", ("B1", "B5"), "LE07_L1TP_044034_20020101.TIF", (478, 1648)),
    ("USGS LT05", ("B4", "B6"), "LT05_L1TP_044034_19900101.TIF", (830, 11450)),
    ("HLS L30", ("B04", "B05", "B06", "Fmask"), "HLS.L30.T10SEJ.tif", (655, 865, 1609, None)),
    ("HLS S30", ("B04", "B05", "B8A"), "HLS.S30.T10SEJ.tif", (665, 704, 865)),
    (
        "SuperDove",
        ("coastal_blue", "blue", "green_i", "green", "yellow", "red", "rededge", "nir"),
        "",
        (443, 480, 531, 560, 610, 655, 710, 845),
    ),
    ("STAC", ("red", "nir08", "swir16", "swir22", "lwir11"), "", (655, 865, 1610, 2200, 10800)),
    ("STAC red edge", ("rededge071", "rededge075", "rededge078"), "", (710, 740, 783)),
    ("GDAL ENVI", ("band 1 (0.513 Micrometers)", "band 2 (0.75 Micrometers)"), "", (513, 750)),
    ("pass-bands", ("Blue (450-515nm)", "Red (630-690nm)"), "", (482, 660)),
    ("German", ("Rot", "Grün", "Blau", "nahes Infrarot"), "", (655, 560, 480, 845)),
    ("French", ("rouge", "vert", "bleu", "proche infrarouge"), "", (655, 560, 480, 845)),
    ("with heights", ("red", "nir", "DEM", "slope"), "", (655, 845, None, None)),
    ("only others", ("SCL", "DEM", "QA_PIXEL"), "", (None, None, None)),
    ("pan", ("pan",), "", (None,)),
    ("MODIS", ("sur_refl_b01", "sur_refl_b02", "sur_refl_b03"), "", (None, None, None)),
    ("radar", ("VV", "VH", "angle"), "", (None, None, None)),
]


@pytest.mark.parametrize(
    ("descriptions", "filename", "centres"), [pytest.param(*r[1:], id=r[0]) for r in DESCRIBED]
)
def test_descriptions_of_real_products(descriptions, filename, centres):
    # As GDAL sees them: three bytes or more look like a colour picture.
    reading = read_bands(RasterMeta(descriptions, filename=filename))
    assert reading.source == "band descriptions"
    assert reading.indexes == tuple(range(1, len(descriptions) + 1))
    for band, expected in zip(reading.bands, centres, strict=True):
        if expected is None:
            assert band.wavelength_nm is None
        else:
            assert band.wavelength_nm == pytest.approx(expected, abs=0.6)


class TestDescriptions:
    def test_bands_of_one_sensor_know_it(self):
        assert read_bands(RasterMeta(("B8A", "B12"))).bands.sensor == "sentinel2"

    def test_a_foreign_band_among_them_clears_the_sensor(self):
        assert read_bands(RasterMeta(("B8A", "B12", "SCL"))).bands.sensor is None

    def test_doubts_are_told(self):
        reading = read_bands(RasterMeta(("B5", "B6", "foo", "SCL")))
        assert "assuming Landsat 8/9" in reading.warnings[0]
        (warning,) = reading.warnings[1:]
        assert warning.startswith("band 3 (foo) is not understood; name each in order with --bands")

    def test_masks_and_heights_win_over_a_default_colour_interpretation(self):
        reading = read_bands(RasterMeta(("SCL", "DEM", "QA"), ("red", "green", "blue")))
        assert reading.bands.wavelengths_nm == (None, None, None)

    def test_names_nobody_understands_are_kept_not_counted(self):
        reading = read_bands(RasterMeta(("VV", "VH", "ratio")))
        assert reading.bands.names == ("VV", "VH", "ratio")
        assert "VV, VH, ratio are not understood" in reading.warnings[0]

    @pytest.mark.parametrize("pattern", ["Band {}", "Band_{}", "Layer_{}", "{}", "band{}"])
    def test_names_that_only_count_say_nothing(self, pattern):
        texts = tuple(pattern.format(i) for i in (1, 2, 3))
        assert read_bands(RasterMeta(texts)).source == "band count"
        coloured = read_bands(RasterMeta(texts, ("blue", "green", "red")))
        assert coloured.bands.names == ("blue", "green", "red")

    @pytest.mark.parametrize("filename", ["sentinel2_x.tif", "S2_x.dat", "LC08_x.tif", "x.tif"])
    @pytest.mark.parametrize("pattern", ["Band {}", "Band_{}", "band{}", "Layer_{}", "{}"])
    def test_a_sensor_in_the_name_does_not_turn_a_count_into_its_bands(self, filename, pattern):
        texts = tuple(pattern.format(i) for i in range(1, 7))
        reading = read_bands(RasterMeta(texts, filename=filename))
        assert reading.bands.bands == sensor("satellite").bands.bands
        assert "bands have no names; assuming blue, green" in reading.warnings[0]
        assert reading.warnings[0].endswith("(say --bands or --sensor if not)")

    def test_thirteen_counted_bands_of_sentinel_2_keep_their_order(self):
        texts = tuple(f"Band {i}" for i in range(1, 14))
        reading = read_bands(RasterMeta(texts, filename="S2_x.tif"))
        assert reading.bands.names == sensor("sentinel2").bands.names
        assert reading.source == "band count"
        assert "assuming Sentinel-2 MSI" in reading.warnings[0]

    @pytest.mark.parametrize("filename", ["S2_20220902.tif", "x.tif"])
    def test_a_colour_says_more_than_a_count(self, filename):
        words = ("Blue", "Green", "Red", "NIR", "SWIR1", "SWIR2")
        texts = tuple(f"Band {i} - {word}" for i, word in enumerate(words, start=1))
        reading = read_bands(RasterMeta(texts, filename=filename))
        assert rounded(reading) == [480, 560, 655, 845, 1610, 2200]
        assert reading.warnings == ()

    @pytest.mark.parametrize(
        ("filename", "count", "said"),
        [
            ("S2_x.tif", 6, "of Sentinel-2 MSI; if the names only count"),
            ("LE07_x.tif", 6, "of Landsat 7 ETM+; if the names only count"),
            ("LC08_x.tif", 7, None),
        ],
    )
    def test_numbers_that_may_only_count_are_told(self, filename, count, said):
        texts = tuple(f"B{i}" for i in range(1, count + 1))
        warnings = read_bands(RasterMeta(texts, filename=filename)).warnings
        assert (said or "") in "".join(warnings)
        assert len(warnings) == (said is not None)

    def test_bands_without_description_beside_others_go_by_their_colours(self):
        colours = ("red", "green", "blue", "undefined")
        reading = read_bands(RasterMeta((None, "", "Band 3", "nir"), colours))
        assert reading.bands.names == ("red", "green", "blue", "nir")
        assert reading.warnings == ()

    def test_25_counted_bands_are_hss_by_count(self):
        reading = read_bands(RasterMeta(tuple(f"Band {i}" for i in range(1, 26))))
        assert reading.bands.wavelengths_nm == sensor("hss").bands.wavelengths_nm

    def test_dates_apart_equal_bands_are_told_apart(self):
        reading = read_bands(RasterMeta(("red 2020", "red 2021")))
        assert reading.bands.names == ("red #1", "red #2")
        assert rounded(reading) == [655, 655]
        (doubt,) = reading.warnings
        assert doubt.startswith("red is there 2 times (bands 1, 2); the first is used")

    def test_colours_that_are_repeated_are_told(self):
        colours = ("red", "green", "blue", "red")
        assert "red is there 2 times" in read_bands(RasterMeta((None,) * 4, colours)).warnings[-1]

    @pytest.mark.parametrize("texts", [("490", "560", " 842 "), ("0.49", ".56", "0.842")])
    @pytest.mark.parametrize("colours", [(), ("red", "green", "alpha")])
    def test_numbers_without_a_unit_are_wavelengths_and_that_is_said(self, texts, colours):
        reading = read_bands(RasterMeta(texts, colours))
        assert reading.bands.names == ("490nm", "560nm", "842nm")
        assert (rounded(reading), reading.source) == ([490, 560, 842], "band descriptions")
        assert "taken for wavelengths (say --bands if not)" in reading.warnings[0]

    @pytest.mark.parametrize(
        "texts",
        [("2019", "2020", "2021"), ("490", "560", "9000"), ("490", "0.56", "842"), ("7", "8", "9")],
    )
    def test_numbers_of_another_meaning_are_not_understood_and_not_guessed_at(self, texts):
        reading = read_bands(RasterMeta(texts))
        assert reading.bands.wavelengths_nm == (None, None, None)
        assert "are not understood; use --bands" in reading.warnings[0]

    def test_names_b1_b2_b3_only_count_as_earth_engine_s_of_uploaded_files_do(self):
        names = ("b1", "b2", "b3")
        assert read_bands(RasterMeta(names)).bands.names == ("red", "green", "blue")
        coloured = read_bands(RasterMeta(names, ("blue", "green", "red")))
        assert coloured.bands.names == ("blue", "green", "red")
        assert coloured.source == "colour interpretation"
        six = read_bands(RasterMeta(tuple(f"B{i}" for i in range(1, 7))))
        assert six.bands.bands == sensor("satellite").bands.bands
        masked = read_bands(RasterMeta((*names, "cloud_mask")))
        assert masked.bands.names[-1] == "cloud_mask"

    @pytest.mark.parametrize("count", [7, 11])
    def test_numbers_of_a_usual_stack_of_landsat_are_its_bands_and_told(self, count):
        reading = read_bands(RasterMeta(tuple(f"B{i}" for i in range(1, count + 1))))
        assert reading.bands.bands == sensor("landsat8").bands.bands[:count]
        assert "with B1 at 443 nm, B2 at 482 nm" in reading.warnings[0]

    def test_a_count_may_begin_at_zero(self):
        assert read_bands(RasterMeta(("Band 0", "Band 1", "Band 2"))).source == "band count"


class TestColoursAndAlpha:
    def test_alpha_is_no_data(self):
        reading = read_bands(RasterMeta((None,) * 4, ("red", "green", "blue", "alpha")))
        assert reading.bands.names == ("red", "green", "blue")
        assert reading.indexes == (1, 2, 3)

    def test_alpha_in_front_shifts_the_indexes(self):
        reading = read_bands(RasterMeta((None,) * 4, ("alpha", "red", "green", "blue")))
        assert reading.indexes == (2, 3, 4)

    @pytest.mark.parametrize(
        ("descriptions", "centre"),
        [
            (("red", "green", "blue", "nir"), 845),
            (("Red", "Green", "Blue", "NIR"), 845),
            (("B4", "B3", "B2", "B8"), 833),
            (("a", "b", "c", "760nm"), 760),
        ],
    )
    def test_a_described_alpha_band_is_data(self, descriptions, centre):
        reading = read_bands(RasterMeta(descriptions, ("red", "green", "blue", "alpha")))
        assert reading.indexes == (1, 2, 3, 4)
        assert reading.bands.wavelengths_nm[3] == centre

    def test_an_alpha_band_with_a_wavelength_is_data(self):
        meta = RasterMeta(
            ("w", "x", "y", "z"),
            ("red", "green", "blue", "alpha"),
            imagery=imagery("0.5", "0.6", "0.7", "0.8"),
        )
        assert read_bands(meta).indexes == (1, 2, 3, 4)

    @pytest.mark.parametrize("text", ["alpha", "Alpha", "mask", "transparency", None])
    def test_an_alpha_band_described_as_such_is_dropped(self, text):
        meta = RasterMeta(("red", "green", "blue", text), ("red", "green", "blue", "alpha"))
        assert read_bands(meta).indexes == (1, 2, 3)

    def test_a_nameless_fourth_band_is_assumed_near_infrared_with_a_warning(self):
        reading = read_bands(RasterMeta((None,) * 4, ("red", "green", "blue", "undefined")))
        assert reading.bands.names == ("red", "green", "blue", "nir")
        assert "assuming near infrared" in reading.warnings[0]

    def test_an_alpha_band_of_many_values_is_a_doubt_and_another_a_note(self):
        colours, remedy = ("red", "green", "blue", "alpha"), "give --bands red,green,blue,nir"
        mask = read_bands(RasterMeta((None,) * 4, colours))
        assert mask.warnings == ()
        (note,) = mask.notes
        assert note.startswith("band 4 is marked alpha and taken for a mask; if it is near")
        assert note.endswith(remedy)
        graded = read_bands(RasterMeta((None,) * 4, colours, graded=(4,)))
        assert graded.indexes == (1, 2, 3)
        assert "many values" in graded.warnings[0]
        assert remedy in graded.warnings[0]
        assert graded.notes == ()

    @pytest.mark.parametrize("text", ["alpha", "mask"])
    def test_an_alpha_band_that_says_so_is_no_news(self, text):
        colours = ("red", "green", "blue", "alpha")
        reading = read_bands(RasterMeta((None, None, None, text), colours))
        assert (reading.warnings, reading.notes) == ((), ())

    @pytest.mark.parametrize("colours", [(None,) * 3, ("red", "green", "blue")])
    @pytest.mark.parametrize("text", ["T", "foo"])
    def test_an_alpha_band_of_another_name_is_no_mask(self, colours, text):
        meta = RasterMeta((*colours, text), ("red", "green", "blue", "alpha"))
        reading = read_bands(meta)
        assert reading.indexes == (1, 2, 3, 4)
        assert reading.bands.names == ("red", "green", "blue", text)
        (warning,) = reading.warnings
        assert f"band 4 ({text}) is not understood" in warning
        assert warning.endswith("--bands, for instance red,green,blue,thermal")

    def test_an_alpha_band_named_after_another_layer_is_no_mask(self):
        meta = RasterMeta(("red", "green", "blue", "cloud_mask"), ("red", "green", "blue", "alpha"))
        reading = read_bands(meta)
        assert reading.indexes == (1, 2, 3, 4)
        assert reading.bands.wavelengths_nm[3] is None
        assert reading.notes == (
            "band 4 (cloud_mask) is marked alpha; going by its name it is no mask",
        )

    def test_an_alpha_band_whose_name_only_counts_is_one_without_name(self):
        texts = tuple(f"Band {i}" for i in range(1, 5))
        meta = RasterMeta(
            texts, ("red", "green", "blue", "alpha"), graded=(4,), filename="S2_x.tif"
        )
        reading = read_bands(meta)
        assert reading.bands.names == ("red", "green", "blue")
        assert "taken for a mask, though it has many values" in reading.warnings[0]

    def test_an_alpha_band_numbered_by_its_sensor_is_data(self):
        texts = tuple(f"Band {i}" for i in (4, 3, 2, 8))
        meta = RasterMeta(texts, ("red", "green", "blue", "alpha"), filename="S2_x.tif")
        assert rounded(read_bands(meta)) == [665, 560, 492, 833]

    @pytest.mark.parametrize(
        ("colours", "graded"), [((), ()), (("red", "green", "blue", "alpha"), (4,))]
    )
    def test_t_beside_the_colours_is_heat_unless_it_may_be_transparency(self, colours, graded):
        reading = read_bands(RasterMeta(("R", "G", "B", "T"), colours, graded=graded))
        assert reading.bands.names == ("red", "green", "blue", "thermal")
        (warning,) = reading.warnings
        assert warning.startswith("band 4 (T) is taken for thermal infrared")
        assert warning.endswith("--bands red,green,blue,nir")

    def test_t_beside_anything_else_means_nothing(self):
        assert read_bands(RasterMeta(("red", "nir", "T"))).bands.wavelengths_nm[2] is None

    @pytest.mark.parametrize("text", ["IR", "infrared"])
    def test_infrared_beside_the_colours_may_be_heat(self, text):
        reading = read_bands(RasterMeta(("red", "green", "blue", text)))
        assert reading.bands.names[3] == "nir"
        assert reading.warnings == (
            f"band 4 ({text}) is taken for near infrared; if it is heat, give "
            "--bands red,green,blue,thermal",
        )

    def test_near_infrared_is_not_doubted(self):
        assert read_bands(RasterMeta(("red", "green", "blue", "NIR"))).warnings == ()

    def test_bands_beside_the_colours_are_told_if_nothing_names_them(self):
        reading = read_bands(RasterMeta((None,) * 6, ("red", "green", "blue", *["undefined"] * 3)))
        assert reading.bands.names[:3] == ("red", "green", "blue")
        assert reading.warnings == (
            "bands 4 to 6 are not understood; name each in order with --bands, for instance "
            "red,green,blue,nir,swir1,swir2",
        )

    def test_the_users_word_on_an_alpha_band_is_not_doubted(self):
        meta = RasterMeta((None,) * 4, ("red", "green", "blue", "alpha"), graded=(4,))
        for bands in ("red,green,blue", "red,green,blue,nir"):
            reading = read_bands(meta, bands=bands)
            assert (reading.warnings, reading.notes) == ((), ())

    def test_false_colour_infrared(self):
        reading = read_bands(RasterMeta((None,) * 3, ("nir", "red", "green")))
        assert rounded(reading) == [845, 655, 560]

    def test_print_colours_are_no_spectral_bands(self):
        colours = ("cyan", "magenta", "yellow", "black")
        assert read_bands(RasterMeta((None,) * 4, colours)).source == "band count"


class TestCount:
    @pytest.mark.parametrize(
        ("count", "preset"),
        [(3, "mss"), (4, "naip"), (5, "rededge_mx"), (6, "satellite"), (8, "planetscope8")],
    )
    def test_usual_counts_are_assumed_and_told(self, count, preset):
        reading = read_bands(RasterMeta((None,) * count))
        assert reading.bands.bands == sensor(preset).bands.bands[:count]
        assert reading.bands.sensor is None  # a guess must not match by name
        assert f"because there are {count}" in reading.warnings[0]

    @pytest.mark.parametrize(
        ("filename", "count", "first", "last"),
        [
            ("S2A_MSIL2A_x.tif", 12, "B01", "B12"),
            ("LC08_x.tif", 7, "B1", "B7"),
            ("LT05_x.tif", 6, "B1", "B7"),
        ],
    )
    def test_the_name_of_the_file_helps_where_the_count_fits_its_sensor(
        self, filename, count, first, last
    ):
        reading = read_bands(RasterMeta((None,) * count, filename=filename))
        assert (reading.bands.names[0], reading.bands.names[-1]) == (first, last)
        assert "B10" not in reading.bands.names
        assert reading.bands.sensor is None
        assert "the file's name or tags tell of it" in reading.warnings[0]

    @pytest.mark.parametrize(
        ("filename", "count"), [("S2_x.tif", 5), ("S2_x.tif", 8), ("LC08_x.tif", 13)]
    )
    def test_a_count_of_another_sensor_than_the_file_name_says_nothing(self, filename, count):
        reading = read_bands(RasterMeta((None,) * count, filename=filename))
        assert set(reading.bands.wavelengths_nm) == {None}

    @pytest.mark.parametrize(
        ("filename", "names", "other"),
        [
            ("x.tif", "red,green,blue,nir", "blue,green,red,nir"),
            ("S2_x.tif", "blue,green,red,nir", "red,green,blue,nir"),
            ("x_3B_AnalyticMS_SR.tif", "blue,green,red,nir", "red,green,blue,nir"),
            ("x.tif", "blue,green,red,nir,rededge", "blue,green,red,rededge,nir"),
        ],
    )
    def test_the_order_that_is_assumed_is_told_with_the_other_one(self, filename, names, other):
        reading = read_bands(RasterMeta((None,) * (names.count(",") + 1), filename=filename))
        assert ",".join(reading.bands.names) == names
        (warning,) = reading.warnings
        assert names.replace(",", ", ") in warning.replace("near infrared", "nir")
        assert f"(say --bands, such as {other}, or --sensor if not)" in warning

    def test_eight_bands_of_planet_are_told_one_by_one(self):
        meta = RasterMeta((None,) * 8, filename="x_3B_AnalyticMS_SR_8b.tif")
        reading = read_bands(meta)
        assert reading.bands.bands == sensor("planetscope8").bands.bands
        for warning in (*reading.warnings, *read_bands(RasterMeta((None,) * 8)).warnings):
            assert "coastal_blue, blue, green_i, green, yellow, red, rededge, nir" in warning

    @pytest.mark.parametrize("count", [1, 2, 7, 300])
    def test_other_counts_say_nothing(self, count):
        reading = read_bands(RasterMeta((None,) * count))
        assert set(reading.bands.wavelengths_nm) == {None}
        assert "--bands" in reading.warnings[0]


def write(path, count, *, driver="GTiff", dtype="uint16", descriptions=(), tags=None, **profile):
    with rasterio.open(
        path, "w", driver=driver, width=4, height=3, count=count, dtype=dtype, **profile
    ) as dst:
        dst.write(np.zeros((count, 3, 4), dtype))
        for index, text in enumerate(descriptions, start=1):
            dst.set_band_description(index, text)
        for index, values in (tags or {}).items():
            dst.update_tags(index, ns="IMAGERY", **values)
    return path


def read(path, **choice):
    with rasterio.open(path) as src:
        return read_bands(raster_meta(src), **choice)


#: A picture whose fourth band is marked as its transparency.
RGBA = {"photometric": "rgb", "alpha": "yes"}

ENVI_HEAD = """ENVI
samples = 4
lines = 3
bands = 3
header offset = 0
file type = ENVI Standard
data type = 12
interleave = bsq
byte order = 0
"""


def write_envi(path, lines):
    path.with_suffix(".hdr").write_text(ENVI_HEAD + lines, "utf-8")
    path.write_bytes(bytes(4 * 3 * 3 * 2))
    return path


class TestFiles:
    def test_imagery_tags_of_a_geotiff(self, tmp_path):
        tags = {i: {"CENTRAL_WAVELENGTH_UM": f"0.{i}", "FWHM_UM": "0.02"} for i in (5, 6, 7)}
        path = write(tmp_path / "a.tif", 3, tags={i - 4: t for i, t in tags.items()})
        reading = read(path)
        assert reading.source == "IMAGERY metadata"
        assert reading.bands.wavelengths_nm == (500, 600, 700)
        assert [b.fwhm_nm for b in reading.bands] == [20, 20, 20]

    def test_descriptions_of_a_geotiff(self, tmp_path):
        path = write(tmp_path / "a.tif", 2, descriptions=("B8A", "B12"))
        assert read(path).bands.names == ("B8A", "B12")

    def test_the_file_name_tells_the_sensor(self, tmp_path):
        path = write(tmp_path / "LT05_L1TP_044034.tif", 2, descriptions=("B4", "B5"))
        assert read(path).bands.wavelengths_nm == (830, 1650)

    def test_the_folder_name_does_not(self, tmp_path):
        (tmp_path / "LT05_L1TP").mkdir()
        path = write(tmp_path / "LT05_L1TP" / "x.tif", 2, descriptions=("B8A", "B12"))
        assert read(path).bands.sensor == "sentinel2"

    def test_naip_whose_fourth_band_gdal_calls_alpha(self, tmp_path):
        names = ("Red", "Green", "Blue", "NIR")
        path = write(tmp_path / "n.tif", 4, dtype="uint8", descriptions=names)
        with rasterio.open(path) as src:
            assert src.colorinterp[3] == ColorInterp.alpha
        assert read(path).bands.names == ("red", "green", "blue", "nir")

    def test_a_colour_picture_with_transparency(self, tmp_path):
        reading = read(write(tmp_path / "rgba.tif", 4, dtype="uint8"))
        assert reading.bands.names == ("red", "green", "blue")
        assert reading.source == "colour interpretation"

    @pytest.mark.parametrize("tiled", [{}, {"tiled": True, "blockxsize": 16, "blockysize": 16}])
    @pytest.mark.parametrize("kind", ["mask", "soft mask", "near infrared"])
    def test_only_an_alpha_band_of_many_values_is_doubted(self, tmp_path, kind, tiled):
        values = np.random.default_rng(1).integers(20, 200, (4, 60, 80)).astype(np.uint8)
        if kind != "near infrared":
            values[3] = np.where(np.arange(80) < 30, 0, 255)
        if kind == "soft mask":
            values[3, :, 30:34] = (50, 100, 150, 200)
        path = write_scene(tmp_path / "a.tif", values, None, **RGBA, **tiled)
        with rasterio.open(path) as src:
            assert src.colorinterp[3] == ColorInterp.alpha
            meta = raster_meta(src)
        assert meta.graded == ((4,) if kind == "near infrared" else ())
        assert bool(read_bands(meta).warnings) == (kind == "near infrared")

    @pytest.mark.parametrize(
        ("text", "mask", "name"),
        [("T", False, "thermal"), ("T", True, "T"), ("heat", False, "heat"), ("IR", False, "nir")],
    )
    def test_a_described_fourth_band_of_bytes_is_data(self, tmp_path, text, mask, name):
        values = np.random.default_rng(1).integers(0, 200, (4, 60, 80)).astype(np.uint8)
        if mask:
            values[3] = np.where(np.arange(80) < 30, 0, 255)
        path = write_scene(tmp_path / "a.tif", values, ("red", "green", "blue", text), **RGBA)
        reading = read(path)
        assert (reading.indexes, reading.bands.names[3]) == ((1, 2, 3, 4), name)
        (warning,) = reading.warnings
        assert f"band 4 ({text})" in warning
        assert "--bands" in warning

    def test_six_bands_of_which_three_are_colours(self, tmp_path):
        reading = read(write(tmp_path / "a.tif", 6, photometric="rgb"))
        assert "bands 4 to 6 are not understood" in reading.warnings[0]

    def test_an_alpha_band_called_b4_is_looked_at(self, tmp_path):
        values = np.random.default_rng(1).integers(20, 200, (4, 60, 80)).astype(np.uint8)
        path = write_scene(tmp_path / "a.tif", values, ("b1", "b2", "b3", "b4"), **RGBA)
        (warning,) = read(path).warnings
        assert "many values; if it is near infrared, give --bands red,green,blue,nir" in warning

    def test_a_damaged_alpha_band_does_not_stop_the_reading(self, tmp_path):
        values = np.ones((4, 16, 16), np.uint8)
        options = {**RGBA, "compress": "deflate", "interleave": "pixel"}
        path = damage_block(write_scene(tmp_path / "a.tif", values, None, **options), 0, 0)
        with rasterio.open(path) as src, pytest.raises(RasterioError):
            src.read(4)
        assert read(path).indexes == (1, 2, 3)

    def test_a_bare_geotiff_goes_by_count(self, tmp_path):
        assert read(write(tmp_path / "bare.tif", 13)).source == "band count"

    @pytest.mark.parametrize(
        "lines",
        [
            "wavelength units = Nanometers\nwavelength = {600.0, 616.0,\n 632.0}\n",
            "wavelength units = nm\nwavelength = {600, 616, 632}\n",
            "wavelength units = Micrometers\nwavelength = { 0.600 , 0.616 , 0.632 }\n",
            "wavelength units = MICROMETERS\nwavelength = {0.600,0.616,0.632}\n",
            "Wavelength Units = micrometers\nwavelength = {0.600,0.616,0.632}\n",
            "wavelength units = Unknown\nwavelength = {600.0, 616.0, 632.0}\n",
            "wavelength = {0.600, 0.616, 0.632}\n",
            "band names = {a, b, c}\nwavelength units = um\nwavelength = {0.6, 0.616, 0.632}\n",
            "band names = {600 nm, 616 nm, 632 nm}\n",
            "band names = {Band 1, Band 2, Band 3}\nwavelength = {600, 616, 632}\n",
        ],
    )
    def test_envi_headers(self, tmp_path, lines):
        reading = read(write_envi(tmp_path / "cube.img", lines))
        assert reading.bands.wavelengths_nm == (600, 616, 632)
        assert reading.warnings == ()

    def test_envi_widths(self, tmp_path):
        lines = "wavelength units = Nanometers\nwavelength = {600,616,632}\nfwhm = {15,15.5,16}\n"
        reading = read(write_envi(tmp_path / "cube.img", lines))
        assert [b.fwhm_nm for b in reading.bands] == pytest.approx([15, 15.5, 16], abs=0.6)

    def test_a_list_of_bad_bands_in_an_envi_header(self, tmp_path):
        lines = "wavelength units = Nanometers\nwavelength = {600,616,632}\nbbl = {1, 1, 0}\n"
        reading = read(write_envi(tmp_path / "cube.img", lines))
        assert reading.bands.wavelengths_nm == (600, 616, None)

    @pytest.mark.parametrize(
        ("numbers", "unit"), [((600, 616), "Nanometers"), ((0.6, 0.616), "um"), ((600, 616), "")]
    )
    def test_tags_of_bands_may_be_their_wavelengths(self, tmp_path, numbers, unit):
        path = write(tmp_path / "c.tif", 3, descriptions=("a", "b", "c"))
        with rasterio.open(path, "r+") as dst:
            for index, number in enumerate(numbers, start=1):
                dst.update_tags(index, wavelength=str(number), wavelength_units=unit)
        reading = read(path)
        assert reading.bands.wavelengths_nm == (600, 616, None)
        assert reading.source == "band tags"

    def test_tags_of_bands_in_several_units_or_none_of_length_say_nothing(self, tmp_path):
        path = write(tmp_path / "c.tif", 2, descriptions=("a", "b"))
        for units in (("nm", "um"), ("Index", "Index"), ("", "")):
            with rasterio.open(path, "r+") as dst:
                for index, unit in enumerate(units, start=1):
                    dst.update_tags(index, wavelength="1", wavelength_units=unit)
            assert read(path).source == "band descriptions"

    def test_envi_index_is_no_wavelength(self, tmp_path):
        lines = "wavelength units = Index\nwavelength = {1, 2, 3}\n"
        assert read(write_envi(tmp_path / "cube.img", lines)).source == "band count"

    def test_envi_written_by_rasterio_and_turned_into_geotiff(self, tmp_path):
        with rasterio.open(
            tmp_path / "c.img", "w", driver="ENVI", width=4, height=3, count=2, dtype="uint8"
        ) as dst:
            dst.write(np.zeros((2, 3, 4), "uint8"))
            dst.update_tags(ns="ENVI", wavelength="{760, 776}", wavelength_units="Nanometers")
        assert read(tmp_path / "c.img").bands.wavelengths_nm == (760, 776)
        with rasterio.open(tmp_path / "c.img") as src:
            names = src.descriptions
        again = read(write(tmp_path / "c.tif", 2, descriptions=names))
        assert again.bands.wavelengths_nm == (760, 776)

    def test_from_file_to_model(self, tmp_path):
        path = write(tmp_path / "s2.tif", 5, descriptions=("B12", "B8", "B4", "B3", "B2"))
        matching = match_bands(read(path).bands, sensor("satellite").bands)
        assert matching.indexes == (4, 3, 2, 1, None, 0)

    def test_reading_metadata_warns_of_nothing(self, tmp_path):
        path = write(tmp_path / "a.tif", 3, dtype="uint8", descriptions=("red", "green", "blue"))
        with rasterio.open(path) as src, warnings.catch_warnings():
            warnings.simplefilter("error")
            read_bands(raster_meta(src))
