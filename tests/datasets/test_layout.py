"""The prepared layout: what is written is found again, and frames never meet on the map."""

import json

import numpy as np
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.crs import CRS
from rasterio.transform import Affine, array_bounds

from smokegeo.cubes import make_cube, read_cube
from smokegeo.datasets.layout import (
    FRAME_CRS,
    IGNORE,
    Frame,
    clean_id,
    finish_layout,
    grid_pitch,
    grid_transform,
    load_layout,
    read_checksums,
    write_frame,
)
from smokegeo.errors import InputError
from smokegeo.files import sha256
from smokegeo.sensors import sensor

MSS = sensor("mss").bands
UTM = CRS.from_epsg(32632)
PLACE = Affine(0.25, 0, 500000, 0, -0.25, 5400000)


def frame(name="f1", *, height=6, width=8, votes=False, crs=None, transform=None, **facts):
    rng = np.random.default_rng(len(name))
    mask = rng.choice(np.array([0, 1, IGNORE], np.uint8), (height, width))
    return Frame(
        name,
        make_cube(
            rng.integers(0, 255, (4, height, width), np.uint8), MSS, crs=crs, transform=transform
        ),
        mask,
        votes=rng.integers(0, 6, (height, width)).astype(np.uint8) if votes else None,
        **facts,
    )


def write_dataset(root, frames, **more):
    records = [write_frame(root, f, position) for position, f in enumerate(frames)]
    splits = {"train": [frames[0].id], "val": [], "test": [f.id for f in frames[1:]]}
    return finish_layout(root, "mss", MSS, records, splits, **more)


def read(path):
    with rasterio.open(path) as src:
        return src.read(1)


class TestRoundTrip:
    def test_tables_are_found_as_they_were_written(self, tmp_path):
        frames = [
            frame("a", scene="s1", scenarios=("early_stage", "cloud_interference"), votes=True),
            frame("b-2", scene='said "hi", twice', height=3),
        ]
        written = write_dataset(tmp_path, frames, facts={"source": "Müller", "seed": 3})
        found = load_layout(tmp_path, "mss")
        assert found == written
        assert found.bands == MSS
        assert found.facts == {"source": "Müller", "seed": 3}
        first, second = found.frames
        assert (first.id, first.scene, first.width, first.height) == ("a", "s1", 8, 6)
        assert first.scenarios == ("early_stage", "cloud_interference")
        assert first.smoke_pixels == (frames[0].mask == 1).sum()
        assert first.ignored_pixels == (frames[0].mask == IGNORE).sum()
        assert (first.votes, second.votes) == (True, False)
        assert (second.scene, second.scenarios) == ('said "hi", twice', ())

    def test_pixels_are_found_as_they_were_written(self, tmp_path):
        source = frame("a", votes=True)
        layout = write_dataset(tmp_path, [source])
        cube = read_cube(layout.image("a"))
        np.testing.assert_array_equal(cube.values, source.cube.values)
        np.testing.assert_array_equal(read(layout.mask("a")), source.mask)
        np.testing.assert_array_equal(read(tmp_path / "votes" / "a.tif"), source.votes)

    def test_splits_are_found_or_known_to_be_missing(self, tmp_path):
        layout = write_dataset(tmp_path, [frame("a"), frame("b"), frame("c")])
        assert layout.split_ids("train") == ("a",)
        assert layout.split_ids("val") == ()
        assert layout.split_ids("test") == ("b", "c")
        assert layout.split_ids("extra") is None

    def test_any_kind_is_accepted_if_none_is_asked_for(self, tmp_path):
        write_dataset(tmp_path, [frame()])
        assert load_layout(tmp_path).kind == "mss"


class TestFiles:
    def test_masks_say_that_255_is_no_label(self, tmp_path):
        layout = write_dataset(tmp_path, [frame("a", votes=True)])
        with rasterio.open(layout.mask("a")) as src:
            assert (src.nodata, src.dtypes, src.count) == (255, ("uint8",), 1)
        with rasterio.open(tmp_path / "votes" / "a.tif") as src:
            assert src.nodata is None

    def test_image_mask_and_votes_lie_on_each_other(self, tmp_path):
        write_frame(tmp_path, frame("a", votes=True), 70)
        places = set()
        for kind in ("images", "masks", "votes"):
            with rasterio.open(tmp_path / kind / "a.tif") as src:
                places.add((src.crs.to_wkt(), src.transform, src.shape))
        assert len(places) == 1

    def test_checksums_cover_all_files_and_are_right(self, tmp_path):
        write_dataset(tmp_path, [frame("a", votes=True), frame("b")])
        sums = read_checksums(tmp_path)
        files = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
        assert set(sums) == files - {"checksums.sha256"}
        assert {"dataset.json", "frames.csv", "splits/val.txt", "votes/a.tif"} <= set(sums)
        assert all(sha256(tmp_path / name) == digest for name, digest in sums.items())

    def test_missing_checksums_are_no_error(self, tmp_path):
        assert read_checksums(tmp_path) == {}

    def test_checksums_in_binary_style_are_read(self, tmp_path):
        one, two = "AB" * 32, "cd" * 32
        text = f"{one} *images/a b.tif\n{two}  frames.csv\n"
        (tmp_path / "checksums.sha256").write_text(text)
        sums = read_checksums(tmp_path)
        assert sums == {"images/a b.tif": one.lower(), "frames.csv": two}

    @pytest.mark.parametrize("line", ["abcd  frames.csv", "cd" * 32, "\n", "zz" * 32 + "  a"])
    def test_a_damaged_list_of_checksums_is_refused(self, tmp_path, line):
        (tmp_path / "checksums.sha256").write_text(line)
        with pytest.raises(InputError, match="is not a SHA-256"):
            read_checksums(tmp_path)

    @pytest.mark.parametrize("name", ["../a", "a/b", "a b", ".hidden", ""])
    def test_an_id_that_is_no_safe_file_name_is_refused(self, tmp_path, name):
        good = frame("a")
        with pytest.raises(InputError, match="not a safe file name"):
            write_frame(tmp_path, Frame(name, good.cube, good.mask), 0)

    def test_finishing_twice_gives_the_same_checksums(self, tmp_path):
        record = write_frame(tmp_path, frame("a"), 0)
        sums = []
        for _ in range(2):
            finish_layout(tmp_path, "hss", sensor("hss").bands, [record], {})
            sums.append(read_checksums(tmp_path))
        assert sums[0] == sums[1]

    def test_a_table_cut_short_is_noticed(self, tmp_path):
        records = [write_frame(tmp_path, frame(name), n) for n, name in enumerate("abc")]
        finish_layout(tmp_path, "hss", sensor("hss").bands, records, {})
        table = tmp_path / "frames.csv"
        lines = table.read_text().splitlines(keepends=True)
        for damaged in ("".join(lines[:-1]), "".join(lines)[:-9]):
            table.write_text(damaged)
            with pytest.raises(InputError, match=r"dataset.json or frames.csv is damaged"):
                load_layout(tmp_path)

    def test_a_mask_of_another_size_is_refused(self, tmp_path):
        good = frame("a")
        bad = Frame("a", good.cube, good.mask[:-1])
        with pytest.raises(InputError, match=r"a: image is 8x6, mask"):
            write_frame(tmp_path, bad, 0)


class TestPlaces:
    def test_camera_frames_get_a_cell_of_a_plane_nowhere_on_earth(self, tmp_path):
        write_frame(tmp_path, frame("a"), 65)
        with rasterio.open(tmp_path / "images" / "a.tif") as src:
            assert src.transform == grid_transform(65)
            assert src.crs == FRAME_CRS
            assert src.crs.to_epsg() is None
            assert not src.crs.is_geographic
            assert "no place on a map" in src.crs.to_wkt()

    def test_all_camera_frames_share_one_crs_after_reading(self, tmp_path):
        for position, name in enumerate("ab"):
            write_frame(tmp_path, frame(name), position)
        with (
            rasterio.open(tmp_path / "images" / "a.tif") as a,
            rasterio.open(tmp_path / "masks" / "b.tif") as b,
        ):
            assert a.crs == b.crs

    def test_orthophotos_keep_their_place(self, tmp_path):
        write_frame(tmp_path, frame("a", crs=UTM, transform=PLACE), 5)
        for kind in ("images", "masks"):
            with rasterio.open(tmp_path / kind / "a.tif") as src:
                assert src.crs == UTM
                assert src.transform == PLACE

    @settings(deadline=None, max_examples=100)
    @given(st.integers(0, 500), st.sampled_from([1, 63, 64, 65, 200]), st.integers(1, 6000))
    def test_a_patch_four_times_a_frame_around_it_meets_no_other_frame(self, one, step, size):
        pitch = grid_pitch([size])
        left, bottom, right, top = array_bounds(size, size, grid_transform(one, pitch))
        reach = 3 * size  # a patch of four sizes that holds the frame sticks out three at most
        patch = (left - reach, bottom - reach, right + reach, top + reach)
        a, b, c, d = array_bounds(size, size, grid_transform(one + step, pitch))
        assert c <= patch[0] or a >= patch[2] or d <= patch[1] or b >= patch[3]

    @given(st.integers(0, 100_000), st.lists(st.integers(1, 20_000)))
    def test_coordinates_are_whole_numbers_one_per_pixel(self, position, sizes):
        transform = grid_transform(position, grid_pitch(sizes))
        assert all(float(value).is_integer() for value in transform)
        assert (transform.a, transform.e, transform.b, transform.d) == (1, -1, 0, 0)


class TestCleanId:
    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("frame_001.v2", "frame_001.v2"),
            ("a b/c\\d", "a-b-c-d"),
            ("../../etc/passwd", "etc-passwd"),
            (".hidden", "hidden"),
            ("Rauch über Köln", "Rauch-ber-K-ln"),
            ("..", "frame"),
            ("", "frame"),
            ("烟", "frame"),
        ],
    )
    def test_is_a_safe_file_name(self, text, name):
        assert clean_id(text) == name

    @given(st.text())
    def test_any_text_becomes_one_safe_path_part_and_stays_so(self, text):
        name = clean_id(text)
        assert name.isascii()
        assert not set(name) & set('/\\:*?"<>| \0')
        assert name[0] not in "-." and name[-1] not in "-."  # noqa: PT018
        assert clean_id(name) == name


class TestLoadErrors:
    @pytest.mark.parametrize("kind", ["hss", "mss"])
    def test_no_dataset_says_how_to_get_one(self, tmp_path, kind):
        with pytest.raises(InputError) as caught:
            load_layout(tmp_path, kind)
        message = str(caught.value)
        assert f"smokegeo prepare {kind}" in message
        assert "--download" in message
        assert f"smokegeo simulate {kind}" in message
        assert "\n" not in message

    def test_only_commands_that_work_are_recommended(self, tmp_path):
        (tmp_path / "scene.tif").write_bytes(b"")
        with pytest.raises(InputError) as caught:
            load_layout(tmp_path, "satellite")
        assert str(caught.value) == (
            f"{tmp_path} holds no prepared dataset. Make one with `smokegeo simulate satellite "
            "--out FOLDER`, then give --root FOLDER."
        )

    def test_a_folder_that_does_not_exist(self, tmp_path):
        with pytest.raises(InputError, match="no prepared dataset"):
            load_layout(tmp_path / "nowhere")

    def test_another_kind(self, tmp_path):
        write_dataset(tmp_path, [frame()])
        with pytest.raises(InputError, match=r"holds a mss dataset, not hss\. Name that kind"):
            load_layout(tmp_path, "hss")

    def test_a_later_format(self, tmp_path):
        write_dataset(tmp_path, [frame()])
        head = json.loads((tmp_path / "dataset.json").read_text())
        (tmp_path / "dataset.json").write_text(json.dumps({**head, "format": 99}))
        with pytest.raises(InputError, match=r"format 99, .*\. Make it again"):
            load_layout(tmp_path)

    @pytest.mark.parametrize(
        ("file", "content"),
        [
            ("dataset.json", "{"),
            ("dataset.json", "[]"),
            ("dataset.json", "{}"),
            ("dataset.json", '{"format": 1, "kind": "mss", "bands": 5}'),
            ("frames.csv", "id,scene\na,b\n"),
            (
                "frames.csv",
                "id,scene,scenarios,width,height,smoke_pixels,ignored_pixels,votes\n"
                "a,,,x,1,0,0,0\n",
            ),
            (
                "frames.csv",
                "id,scene,scenarios,width,height,smoke_pixels,ignored_pixels,votes\n"
                "../../outside/secret,,,1,1,0,0,0\n",
            ),
        ],
    )
    def test_damaged_tables_are_refused(self, tmp_path, file, content):
        write_dataset(tmp_path, [frame()])
        (tmp_path / file).write_text(content)
        with pytest.raises(InputError, match="is damaged"):
            load_layout(tmp_path)

    def test_a_missing_frame_table_is_refused(self, tmp_path):
        write_dataset(tmp_path, [frame()])
        (tmp_path / "frames.csv").unlink()
        with pytest.raises(InputError, match=r"is damaged .*\. Copy or make it again\."):
            load_layout(tmp_path)

    @pytest.mark.parametrize("name", ["splits/train.txt", "checksums.sha256", "frames.csv"])
    def test_tables_that_are_no_text_are_refused_in_one_line(self, tmp_path, name):
        write_dataset(tmp_path, [frame()])
        (tmp_path / name).write_bytes(b"\xff\xfe\x00")

        def read_all():
            load_layout(tmp_path).split_ids("train")
            read_checksums(tmp_path)

        with pytest.raises(InputError, match="is damaged"):
            read_all()

    @pytest.mark.parametrize("name", ["../secret", "images/../../x", "/etc/passwd", "C:\\x"])
    def test_checksums_of_files_elsewhere_are_refused(self, tmp_path, name):
        (tmp_path / "checksums.sha256").write_text(f"{'0' * 64}  {name}\n")
        with pytest.raises(InputError, match="lies outside of the dataset"):
            read_checksums(tmp_path)
