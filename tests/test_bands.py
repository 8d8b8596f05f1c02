"""Bands, band sets, and the matching of a scene's bands to a model's."""

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from smokegeo.bands import Band, BandSet, is_thermal, match_bands, parse_band_list
from smokegeo.errors import UsageError
from smokegeo.sensors import sensor, sensors

modest = settings(deadline=None, max_examples=150)

names = st.text("abcdefghij0123456789_", min_size=1, max_size=8)
nanometres = st.floats(500, 800).map(lambda x: round(x, 2))
widths = st.none() | st.floats(2, 120).map(lambda x: round(x, 1))


def band_sets(prefix, min_size=0, max_size=8):
    """Bands with a known wavelength, named by position so that names never match across sets."""
    return st.lists(st.tuples(nanometres, widths), min_size=min_size, max_size=max_size).map(
        lambda rows: BandSet(tuple(Band(f"{prefix}{i}", *row) for i, row in enumerate(rows)))
    )


def pairs(matching):
    """Wanted name -> name of the scene band found for it."""
    return {
        entry.wanted.name: matching.scene[entry.found].name
        for entry in matching.entries
        if entry.found is not None
    }


def distances(scene, model):
    return [abs(a.wavelength_nm - b.wavelength_nm) for a in scene for b in model]


def bands_of(name):
    return sensor(name).bands


def as_scene(name, *only):
    """A preset's bands (or some of them) as a scene of unknown sensor."""
    chosen = bands_of(name).subset(only) if only else bands_of(name)
    return BandSet(chosen.bands)


class TestBand:
    @pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
    def test_refuses_numbers_that_are_no_wavelength_or_width(self, value):
        with pytest.raises(UsageError, match=r"red: wavelength .* is not a positive number"):
            Band("red", value)
        with pytest.raises(UsageError, match=r"red: width .* is not a positive number"):
            Band("red", 660, value)

    def test_refuses_an_empty_name(self):
        with pytest.raises(UsageError, match="needs a name"):
            Band("")

    @pytest.mark.parametrize(
        ("centre", "width"), [(None, 20), (660, 20), (1610, 60), (2999, 60), (10800, 1000)]
    )
    def test_unknown_width_is_typical_of_the_region(self, centre, width):
        assert Band("x", centre).width_nm == width

    def test_known_width_is_used(self):
        assert Band("pan", 590, 172).width_nm == 172

    def test_is_immutable_and_hashable(self):
        band = Band("red", 660, 30)
        with pytest.raises(AttributeError):
            band.name = "blue"
        assert {band: 1}[Band("red", 660, 30)] == 1


class TestBandSet:
    @pytest.mark.parametrize("twin", ["red", "Red", "RED"])
    def test_refuses_duplicate_names_whatever_their_case(self, twin):
        with pytest.raises(UsageError, match=f"band {twin} is listed twice"):
            BandSet((Band("red"), Band("green"), Band(twin)))

    def test_is_a_sequence_of_bands(self):
        bands = BandSet((Band("red", 660), Band("qa")))
        assert len(bands) == 2
        assert list(bands) == [bands[0], bands[1]]
        assert bands.names == ("red", "qa")
        assert bands.wavelengths_nm == (660, None)

    def test_index_ignores_case_and_lists_what_there_is(self):
        bands = bands_of("sentinel2")
        assert bands.index("b8a") == 8
        with pytest.raises(UsageError, match=r"no band 'B13'; there are B01, .*, B12"):
            bands.index("B13")

    def test_subset_keeps_the_given_order_and_the_sensor(self):
        subset = bands_of("sentinel2").subset(["B08", "B04"])
        assert subset.names == ("B08", "B04")
        assert subset.sensor == "sentinel2"

    @modest
    @given(
        st.lists(st.tuples(names, st.none() | nanometres, widths), unique_by=lambda row: row[0]),
        st.none() | names,
    )
    def test_survives_json(self, rows, name):
        bands = BandSet(tuple(Band(*row) for row in rows), name)
        assert BandSet.from_dict(json.loads(json.dumps(bands.to_dict()))) == bands

    @pytest.mark.parametrize("name", sensors())
    def test_every_preset_survives_json(self, name):
        bands = bands_of(name)
        assert BandSet.from_dict(json.loads(json.dumps(bands.to_dict()))) == bands


class TestParseBandList:
    bands = BandSet((Band("red"), Band("B04"), Band("760nm"), Band("nir")))

    @pytest.mark.parametrize(
        ("text", "positions"),
        [
            ("red,nir", (0, 3)),
            (" NIR , b04 ", (3, 1)),
            ("4,1", (3, 0)),
            ("760nm,2", (2, 1)),
            (["nir", "1"], (3, 0)),
        ],
    )
    def test_reads_names_and_one_based_numbers(self, text, positions):
        assert parse_band_list(text, self.bands) == positions

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("0", "band 0 does not exist; there are 4 bands"),
            ("5", "band 5 does not exist"),
            ("swir", "no band 'swir'"),
            ("red,1", "band 1 is chosen twice"),
            ("red,,nir", "no band ''"),
            ("-1", "no band '-1'"),
        ],
    )
    def test_refuses_what_is_not_there(self, text, message):
        with pytest.raises(UsageError, match=message):
            parse_band_list(text, self.bands)


class TestMatchingProperties:
    @modest
    @given(band_sets("s"), band_sets("m"))
    def test_no_scene_band_is_used_twice(self, scene, model):
        matching = match_bands(scene, model)
        used = [index for index in matching.indexes if index is not None]
        assert len(set(used)) == len(used)
        assert [entry.wanted for entry in matching.entries] == list(model)
        assert matching.available == tuple(index is not None for index in matching.indexes)

    @modest
    @given(band_sets("s"), band_sets("m"))
    def test_matched_pass_bands_overlap_and_offsets_are_true(self, scene, model):
        for entry in match_bands(scene, model).entries:
            if entry.absent:
                assert entry.offset_nm is None
                continue
            got = scene[entry.found]
            assert entry.offset_nm == got.wavelength_nm - entry.wanted.wavelength_nm
            assert abs(entry.offset_nm) <= (got.width_nm + entry.wanted.width_nm) / 2

    @modest
    @given(band_sets("b", min_size=1), st.sampled_from([None, "camera"]))
    def test_a_set_matches_itself_without_offset(self, bands, name):
        assume(len(set(bands.wavelengths_nm)) == len(bands))
        bands = BandSet(bands.bands, name)
        matching = match_bands(bands, bands)
        assert matching.indexes == tuple(range(len(bands)))
        assert {entry.offset_nm for entry in matching.entries} == {0}

    @modest
    @given(band_sets("s"), band_sets("m"), st.randoms(use_true_random=False))
    def test_order_of_the_scene_does_not_matter(self, scene, model, rng):
        far = distances(scene, model)
        assume(len(set(far)) == len(far))  # exact ties go to the earlier band
        shuffled = list(scene)
        rng.shuffle(shuffled)
        assert pairs(match_bands(BandSet(tuple(shuffled)), model)) == pairs(
            match_bands(scene, model)
        )

    @modest
    @given(band_sets("s"), band_sets("m"), st.integers(0, 8))
    def test_a_far_away_band_changes_nothing(self, scene, model, at):
        bands = list(scene)
        bands.insert(at, Band("far", 9000, 100))
        assert pairs(match_bands(BandSet(tuple(bands)), model)) == pairs(match_bands(scene, model))

    @modest
    @given(band_sets("s", min_size=1), band_sets("m"), st.data())
    def test_removing_a_scene_band_never_idles_another_nor_improves_a_match(
        self, scene, model, data
    ):
        far = distances(scene, model)
        assume(len(set(far)) == len(far))
        gone = data.draw(st.sampled_from(scene.names))
        before = match_bands(scene, model)
        after = match_bands(BandSet(tuple(b for b in scene if b.name != gone)), model)
        assert set(pairs(before).values()) - {gone} <= set(pairs(after).values())
        for old, new in zip(before.entries, after.entries, strict=True):
            if not new.absent:
                assert not old.absent
                assert abs(new.offset_nm) >= abs(old.offset_nm)

    @modest
    @given(band_sets("s"), band_sets("m"))
    def test_closest_pairs_are_made_first(self, scene, model):
        """No wanted band and scene band prefer each other to what they got."""
        matching = match_bands(scene, model)
        taken = {e.found: abs(e.offset_nm) for e in matching.entries if not e.absent}
        for entry in matching.entries:
            own = float("inf") if entry.absent else abs(entry.offset_nm)
            for index, band in enumerate(scene):
                tolerance = (band.width_nm + entry.wanted.width_nm) / 2
                offset = abs(band.wavelength_nm - entry.wanted.wavelength_nm)
                comparable = band.width_nm <= 4 * entry.wanted.width_nm
                pan = any(
                    b.fwhm_nm
                    and b.wavelength_nm - b.fwhm_nm / 2 < 550
                    and b.wavelength_nm + b.fwhm_nm / 2 > 660
                    for b in (band, entry.wanted)
                )
                if offset <= tolerance and comparable and not pan:
                    assert own <= offset or taken.get(index, float("inf")) <= offset


class TestMatchingByName:
    def test_within_a_sensor_names_decide_whatever_the_wavelength(self):
        scene = BandSet((Band("b2", 665), Band("B1", 443)), "cam")
        model = BandSet((Band("B1", 443), Band("B2", 490), Band("B3", 660)), "cam")
        matching = match_bands(scene, model)
        assert matching.indexes == (1, 0, None)
        assert matching.entries[1].offset_nm == 175

    def test_equal_names_of_different_sensors_do_not_decide(self):
        # Landsat 5 B5 is short-wave infrared, Landsat 8 B5 near infrared.
        got = pairs(match_bands(bands_of("landsat5"), bands_of("landsat8")))
        assert got.get("B5") != "B5"
        assert got["B6"] == "B5"
        assert got["B4"] == "B3"

    def test_two_scenes_of_no_known_sensor_are_not_one_sensor(self):
        matching = match_bands(BandSet((Band("x", 443),)), BandSet((Band("x", 2200),)))
        assert matching.available == (False,)

    def test_bands_without_wavelength_match_by_name_and_report_no_offset(self):
        matching = match_bands(
            BandSet((Band("Height"), Band("red", 650))), BandSet((Band("red"), Band("height")))
        )
        assert matching.indexes == (1, 0)
        assert [entry.offset_nm for entry in matching.entries] == [None, None]

    def test_lines_say_what_each_wanted_band_got(self):
        scene = BandSet((Band("B04", 665, 31), Band("height")))
        model = BandSet((Band("red", 660, 45), Band("height"), Band("nir", 845, 100)))
        assert match_bands(scene, model).lines() == [
            "red (660 nm): B04 (665 nm), +5 nm off",
            "height: height, by name",
            "nir (845 nm): absent",
        ]


SATELLITE = ("blue", "green", "red", "nir", "swir1", "swir2")


class TestMatchingRealSensors:
    @pytest.mark.parametrize(
        ("scene", "found"),
        [
            ("sentinel2", ("B02", "B03", "B04", "B08", "B11", "B12")),
            ("landsat8", ("B2", "B3", "B4", "B5", "B6", "B7")),
            ("landsat7", ("B1", "B2", "B3", "B4", "B5", "B7")),
            ("landsat5", ("B1", "B2", "B3", "B4", "B5", "B7")),
            ("planetscope4", ("blue", "green", "red", "nir", None, None)),
            ("planetscope8", ("blue", "green", "red", "nir", None, None)),
            ("naip", ("blue", "green", "red", "nir", None, None)),
            ("rededge_mx", ("blue", "green", "red", "nir", None, None)),
            ("altum", ("blue", "green", "red", "nir", None, None)),
        ],
    )
    def test_each_feeds_the_satellite_model(self, scene, found):
        got = pairs(match_bands(bands_of(scene), bands_of("satellite")))
        assert tuple(got.get(name) for name in SATELLITE) == found

    @pytest.mark.parametrize("source", ["naip", "mss", "planetscope4"])
    def test_a_plain_colour_picture_gives_mss_its_colours_and_no_thermal(self, source):
        got = pairs(match_bands(as_scene(source, "red", "green", "blue"), bands_of("mss")))
        assert got == {"red": "red", "green": "green", "blue": "blue"}

    @pytest.mark.parametrize("source", ["naip", "planetscope4"])
    def test_a_plain_colour_picture_gives_satellite_three_bands(self, source):
        got = pairs(match_bands(as_scene(source, "red", "green", "blue"), bands_of("satellite")))
        assert got == {"red": "red", "green": "green", "blue": "blue"}

    def test_a_multispectral_camera_with_heat_gives_mss_all_it_wants(self):
        got = pairs(match_bands(bands_of("altum"), bands_of("mss")))
        assert got == {name: name for name in ("red", "green", "blue", "thermal")}

    def test_only_colours_reach_further_for_one_of_their_name(self):
        # Green of Landsat 5 and blue of Landsat 8 are both B2, and both wide.
        got = match_bands(as_scene("landsat5", "B2"), bands_of("landsat8").subset(["B2"]))
        assert got.available == (False,)

    def test_a_shifted_camera_feeds_the_bands_of_hss_it_can_see(self):
        model, scene = bands_of("hss"), bands_of("ximea_sm5x5_nir")
        matching = match_bands(scene, model)
        below = [e for e in matching.entries if e.wanted.wavelength_nm < 660]
        assert all(entry.absent for entry in below)  # the camera begins at 675 nm
        found = [e for e in matching.entries if not e.absent]
        assert len(found) >= 18
        assert max(abs(e.offset_nm) for e in found) <= 15
        order = [e.found for e in found]
        assert order == sorted(order)

    @pytest.mark.parametrize("landsat", ["landsat7", "landsat8"])
    @pytest.mark.parametrize("model", ["satellite", "mss", "naip", "planetscope4", "hss"])
    def test_panchromatic_is_never_taken_for_a_colour(self, landsat, model):
        alone = match_bands(as_scene(landsat, "B8"), bands_of(model))
        assert not any(alone.available)
        assert "B8" not in pairs(match_bands(as_scene(landsat), bands_of(model))).values()

    def test_panchromatic_matches_panchromatic(self):
        model = BandSet((Band("pan", 600, 200),))
        assert pairs(match_bands(as_scene("landsat8"), model)) == {"pan": "B8"}

    def test_a_broad_band_does_not_stand_in_for_a_narrow_one(self):
        matching = match_bands(as_scene("sentinel2", "B08"), bands_of("hss"))
        assert not any(matching.available)

    def test_an_empty_scene_leaves_all_bands_absent(self):
        assert match_bands(BandSet(()), bands_of("satellite")).available == (False,) * 6


@pytest.mark.parametrize(
    ("band", "hot"),
    [
        (Band("B10", 10_900), True),
        (Band("mwir", 3900), True),
        (Band("swir2", 2200), False),
        (Band("Thermal"), True),
        (Band("LWIR"), True),
        (Band("red"), False),
    ],
)
def test_thermal_bands_are_known_by_wavelength_or_name(band, hot):
    assert is_thermal(band) is hot
