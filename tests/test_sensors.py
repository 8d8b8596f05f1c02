"""Sensor presets against the makers' published numbers, and a user's own preset file."""

import pytest

from smokegeo.errors import InputError, UsageError
from smokegeo.sensors import parse_sensor, read_sensor_file, sensor, sensors

HSS_NM = (
    *(600, 616, 632, 647, 664, 680, 696, 712, 728, 744, 760, 776, 792, 808, 824, 840, 856, 872),
    *(888, 894, 910, 926, 942, 958, 974),
)


def test_hss_has_the_25_wavelengths_the_paper_prints():
    bands = sensor("hss").bands
    assert bands.wavelengths_nm == HSS_NM
    assert bands.names == tuple(f"{nm}nm" for nm in HSS_NM)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("hss", 25),
        ("mss", 4),
        ("satellite", 6),
        ("sentinel2", 13),
        ("landsat8", 11),
        ("landsat7", 8),
        ("landsat5", 7),
        ("planetscope4", 4),
        ("planetscope8", 8),
        ("naip", 4),
        ("rededge_mx", 5),
        ("altum", 6),
        ("ximea_sm5x5_nir", 25),
    ],
)
def test_each_preset_has_all_its_bands_with_centre_and_width(name, count):
    preset = sensor(name)
    assert len(preset.bands) == count
    assert preset.name == preset.bands.sensor == name
    assert preset.title
    assert all(band.wavelength_nm and band.fwhm_nm for band in preset.bands)


#: Pass-bands (nm) as the operators publish them; a centre must lie inside.
PASS_BANDS = {
    "sentinel2": {
        "B01": (433, 453),
        "B02": (458, 526),
        "B03": (542, 578),
        "B04": (650, 681),
        "B05": (697, 712),
        "B06": (732, 748),
        "B07": (773, 793),
        "B08": (780, 900),
        "B8A": (854, 876),
        "B09": (935, 955),
        "B10": (1360, 1390),
        "B11": (1565, 1660),
        "B12": (2100, 2290),
    },
    "landsat8": {
        "B1": (435, 451),
        "B2": (452, 512),
        "B3": (533, 590),
        "B4": (636, 673),
        "B5": (851, 879),
        "B6": (1566, 1651),
        "B7": (2107, 2294),
        "B8": (503, 676),
        "B9": (1363, 1384),
        "B10": (10600, 11190),
        "B11": (11500, 12510),
    },
    "landsat7": {
        "B1": (441, 514),
        "B2": (519, 601),
        "B3": (631, 692),
        "B4": (772, 898),
        "B5": (1547, 1749),
        "B6": (10310, 12360),
        "B7": (2064, 2345),
        "B8": (515, 896),
    },
    "landsat5": {
        "B1": (450, 520),
        "B2": (520, 600),
        "B3": (630, 690),
        "B4": (760, 900),
        "B5": (1550, 1750),
        "B6": (10400, 12500),
        "B7": (2080, 2350),
    },
    "planetscope4": {
        "blue": (455, 515),
        "green": (500, 590),
        "red": (590, 670),
        "nir": (780, 860),
    },
    "planetscope8": {
        "coastal_blue": (431, 452),
        "blue": (465, 515),
        "green_i": (513, 549),
        "green": (547, 583),
        "yellow": (600, 620),
        "red": (650, 680),
        "rededge": (697, 713),
        "nir": (845, 885),
    },
    "rededge_mx": {
        "blue": (459, 491),
        "green": (546, 574),
        "red": (661, 675),
        "nir": (813, 871),
        "rededge": (711, 723),
    },
    "altum": {"rededge": (711, 723), "nir": (813, 871), "thermal": (8000, 14000)},
    "naip": {"red": (600, 700), "green": (500, 600), "blue": (400, 520), "nir": (780, 900)},
}


@pytest.mark.parametrize(
    ("name", "band", "limits"),
    [(name, band, limits) for name, table in PASS_BANDS.items() for band, limits in table.items()],
)
def test_centres_and_widths_agree_with_published_pass_bands(name, band, limits):
    bands = sensor(name).bands
    low, high = limits
    found = bands[bands.index(band)]
    assert low < found.wavelength_nm < high
    assert found.fwhm_nm <= 1.1 * (high - low)
    assert abs(found.wavelength_nm - (low + high) / 2) <= 0.2 * (high - low)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("hss", "hss"),
        (" HSS ", "hss"),
        ("S2", "sentinel2"),
        ("Sentinel-2", "sentinel2"),
        ("sentinel_2", "sentinel2"),
        ("Landsat 9", "landsat8"),
        ("landsat-8", "landsat8"),
        ("L7", "landsat7"),
        ("TM", "landsat5"),
        ("RedEdge-MX", "rededge_mx"),
        ("MicaSense", "rededge_mx"),
        ("planetscope-8", "planetscope8"),
        ("ximea", "ximea_sm5x5_nir"),
    ],
)
def test_presets_are_found_by_the_names_people_type(typed, name):
    assert sensor(typed).name == name


def test_an_unknown_sensor_lists_the_known_ones():
    with pytest.raises(UsageError, match=r"'sentinel3' is not known; there are .*hss.*sentinel2"):
        sensor("sentinel3")


def test_all_presets_are_listed_in_order():
    assert list(sensors()) == sorted(sensors())
    assert len(sensors()) >= 13


def test_ximea_mosaic_holds_each_band_once():
    mosaic = sensor("ximea").mosaic
    assert len(mosaic.rank) == 5
    assert sorted(v for row in mosaic.rank for v in row) == list(range(25))
    assert (mosaic.skip_rows, mosaic.skip_columns) == (3, 0)


class TestOwnFile:
    def test_is_read_with_and_without_widths(self, tmp_path):
        path = tmp_path / "mycam.toml"
        path.write_text('title = "My camera"\nbands = [["a", 500], ["b", 600.5, 20]]\n')
        mine = read_sensor_file(path)
        assert (mine.name, mine.title, mine.mosaic) == ("mycam", "My camera", None)
        assert mine.bands.wavelengths_nm == (500, 600.5)
        assert [band.fwhm_nm for band in mine.bands] == [None, 20]

    def test_may_have_a_mosaic(self):
        text = 'title = "m"\nbands = [["a", 500, 9], ["b", 600, 9]]\n[mosaic]\nrank = [[2, 1]]\n'
        mosaic = parse_sensor("m", text).mosaic
        assert mosaic.rank == ((1, 0),)
        assert (mosaic.skip_rows, mosaic.skip_columns) == (0, 0)

    @pytest.mark.parametrize(
        "text",
        [
            "not toml at all [",
            'title = "no bands"',
            'bands = [["a", 500, 9]]',
            'title = "t"\nbands = [["a"]]',
            'title = "t"\nbands = [["a", "red", 9]]',
            'title = "t"\nbands = [["a", 1, 2, 3]]',
            'title = "t"\nbands = 5',
            'title = "t"\nbands = [["a", 500, 9], ["A", 600, 9]]',
            'title = "t"\nbands = [["a", -500, 9]]',
            'title = "t"\nbands = [["a", 500, 9], ["b", 600, 9]]\n[mosaic]\nrank = [[1, 1]]',
            'title = "t"\nbands = [["a", 500, 9], ["b", 600, 9]]\n[mosaic]\nrank = [[1], [2, 3]]',
        ],
    )
    def test_that_is_wrong_is_refused_in_one_line_with_its_name(self, tmp_path, text):
        path = tmp_path / "broken.toml"
        path.write_text(text)
        with pytest.raises(InputError, match=r"broken\.toml is not usable \(.+\)") as caught:
            read_sensor_file(path)
        assert "\n" not in str(caught.value)

    def test_that_is_missing_or_no_text_is_refused(self, tmp_path):
        with pytest.raises(InputError, match=r"nothing\.toml: cannot be read"):
            read_sensor_file(tmp_path / "nothing.toml")
        (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(InputError, match=r"binary\.toml: cannot be read"):
            read_sensor_file(tmp_path / "binary.toml")
