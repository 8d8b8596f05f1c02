"""`predict` from Python and from the command line: the same work, the same bytes."""

from __future__ import annotations

import json
import logging
import re
import shutil
from pathlib import Path

import geopandas
import numpy as np
import pytest
import rasterio
import rioxarray
from affine import Affine
from geopandas.testing import assert_geodataframe_equal
from pandas.testing import assert_frame_equal
from toy_models import save_toy
from toy_scenes import PLACE, UTM, landscape, write_scene

import smokegeo
from smokegeo.cubes import make_cube, read_cube
from smokegeo.errors import InputError, UsageError
from smokegeo.pipeline import predict_scene
from smokegeo.runs import Folders, Summary, as_failure, outputs_for
from smokegeo.settings import request_from
from smokegeo.work import work_path
from smokegeo.writing.outputs import Outputs

TIME = {"ACQUISITIONDATETIME": "2024-08-30T10:05:59Z"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_toy(tmp_path_factory.mktemp("model") / "toy.safetensors", threshold=0.52)


@pytest.fixture(scope="module")
def pixels():
    values = landscape(6, (100, 120))
    values[:, 50:60, 70:90] = 0
    return values


@pytest.fixture(scope="module")
def original(pixels, tmp_path_factory):
    path = tmp_path_factory.mktemp("scene") / "scene.tif"
    return write_scene(path, pixels, nodata=0, tags=TIME)


@pytest.fixture
def scene(original, tmp_path):
    """A scene in a folder of its own."""
    folder = tmp_path / "scenes"
    folder.mkdir()
    return Path(shutil.copy2(original, folder / "scene.tif"))


def places(frame):
    """Everything about polygons but where they came from."""
    return frame.drop(columns=["source", "acquired"])


# From Python


def test_polygons_are_returned_and_written_alike(scene, model, tmp_path):
    found = smokegeo.predict(scene, tmp_path / "smoke.gpkg", model)
    assert len(found) > 2
    assert found.crs == UTM
    assert set(found["source"]) == {"scene.tif"}
    assert found["acquired"].dt.strftime("%Y-%m-%dT%H:%M:%S").unique() == ["2024-08-30T10:05:59"]
    written = geopandas.read_file(tmp_path / "smoke.gpkg", layer="smoke")
    assert_geodataframe_equal(found, written, check_dtype=False, check_like=True)


def test_nothing_is_written_unless_asked_for(scene, model, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    frame = smokegeo.predict(str(scene), model=model)
    assert len(frame) > 2
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("suffix", [".gpkg", ".geojson", ".fgb", ".parquet"])
def test_the_same_input_makes_the_same_bytes(scene, model, tmp_path, suffix):
    written = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        smokegeo.predict(
            scene,
            folder / f"s{suffix}",
            model,
            prob=folder / "p.tif",
            web_map=folder / "m.html",
            threads=1 if name == "a" else 3,
        )
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert written[0].keys() >= {f"s{suffix}", "p.tif", "m.html"}
    assert written[0] == written[1]


def test_an_array_gives_what_its_file_gives(scene, model, pixels):
    from_file = places(smokegeo.predict(scene, model=model))
    opened = rioxarray.open_rasterio(scene)
    lazy = rioxarray.open_rasterio(scene, chunks={"x": 50, "y": 50})
    masked = rioxarray.open_rasterio(scene, masked=True)
    made = make_cube(pixels, smokegeo.modelfile.read_card(model).bands, crs=UTM, transform=PLACE)
    for array in (opened, lazy, masked, made.rio.write_nodata(0), read_cube(scene)):
        options = {"nodata": 0} if array.rio.nodata is None else {}
        assert_frame_equal(places(smokegeo.predict(array, model=model, **options)), from_file)


def test_several_scenes_come_back_as_one_frame_in_degrees(scene, model, tmp_path):
    empty = write_scene(scene.with_name("empty.tif"), np.zeros((6, 40, 40), np.uint16), nodata=0)
    one = smokegeo.predict(scene, model=model)
    both = smokegeo.predict([scene, empty, str(scene)], model=model)
    assert both.crs == "OGC:CRS84"
    assert len(both) == 2 * len(one)
    assert both["id"].tolist() == list(range(1, len(both) + 1))
    assert both["area_m2"].tolist() == one["area_m2"].tolist() * 2
    assert both.dtypes.to_dict() == one.dtypes.to_dict()
    west, south, east, north = both.total_bounds
    assert 14.9 < west < east < 15.1
    assert 49.5 < south < north < 49.8


def test_several_scenes_over_the_antimeridian_are_cut_there(model, tmp_path):
    place = Affine(10_000, 0, 200_000, 0, -10_000, 7_000_000)  # UTM zone 1 begins there
    path = write_scene(
        tmp_path / "scene.tif", landscape(6, (60, 60)), crs="EPSG:32601", transform=place
    )
    frame = smokegeo.predict([path, path], model=model, threshold=0.01)
    parts = frame.geometry.explode().bounds
    assert (parts.maxx - parts.minx).max() < 90
    assert (frame.total_bounds[0], frame.total_bounds[2]) == (-180, 180)


def test_several_scenes_in_pixels_stay_in_pixels(scene, model):
    both = smokegeo.predict([scene, scene], model=model, pixel_coords=True)
    assert both.crs is None
    assert both.total_bounds[2] <= 120


def test_a_photograph_gets_a_map_in_its_own_pixels(scene, model, tmp_path):
    where = tmp_path / "map.html"
    smokegeo.predict(scene, model=model, pixel_coords=True, web_map=where)
    settings = re.search(r'id="settings">(.*?)</script>', where.read_text("utf-8"))
    assert settings is not None
    found = json.loads(settings[1])
    assert found["inPixels"] is True
    assert found["picture"]["bounds"] == [[-100, 0], [0, 120]]


def test_only_empty_scenes_are_an_empty_frame(tmp_path, model):
    path = write_scene(tmp_path / "e.tif", np.zeros((6, 40, 40), np.uint16), nodata=0)
    both = smokegeo.predict([path, path], model=model)
    assert len(both) == 0
    assert both.crs == "OGC:CRS84"


@pytest.mark.parametrize(
    ("scenes", "options", "fact"),
    [
        ([], {}, "no scene was given"),
        (["a.tif", "b.tif"], {"out": "s.gpkg"}, "one scene only"),
        (["a.tif", "b.tif"], {"prob": "p.tif"}, "one scene only"),
        ("a.tif", {"colour": 1}, "no setting 'colour'"),
        ("a.tif", {"out": "s.shp"}, "no vector format"),
        ("a.tif", {"threshold": 3}, "threshold 3"),
    ],
)
def test_wrong_calls_are_refused_before_any_scene_is_opened(scenes, options, fact, tmp_path):
    with pytest.raises(UsageError, match=fact):
        smokegeo.predict(scenes, **options)


def test_a_scene_is_found_the_same_by_parts(scene, model, tmp_path):
    """A window of a scene lies where it lies in the whole."""
    whole = tmp_path / "whole.tif"
    part = tmp_path / "part.tif"
    smokegeo.predict(scene, model=model, prob=whole, tile=64)
    smokegeo.predict(scene, model=model, prob=part, tile=64, window=(0, 0, 64, 64), overlap=0)
    with rasterio.open(part) as src, rasterio.open(whole) as all_of_it:
        assert src.transform == all_of_it.transform
        assert src.shape == (64, 64)
        # The first tile's own corner is the same, whatever is joined to it.
        assert (src.read(1)[:24, :24] == all_of_it.read(1)[:24, :24]).all()
    smokegeo.predict(scene, model=model, prob=part, window="30,20,40,40", overwrite=True)
    with rasterio.open(part) as src:
        assert src.transform @ (0, 0) == PLACE @ (30, 20)


# Going on after an interruption


class Halt(KeyboardInterrupt):
    pass


def stop_after(monkeypatch, count):
    """Interrupt the run when this many tiles have been asked for."""

    def halting(items, label, total=None):
        for number, item in enumerate(items):
            if label == "tiles" and number == count:
                raise Halt
            yield item

    monkeypatch.setattr("smokegeo.pipeline.track", halting)


def search(scene, out, model, **settings):
    """Predict with small tiles, one at a time, so that there is something to interrupt."""
    request = request_from({"model": model, "tile": 32, "threads": 1, **settings})
    predict_scene(scene, Outputs(out, out.with_suffix(".tif")), request)


@pytest.fixture
def broken_off(scene, model, tmp_path, monkeypatch):
    """An output whose work was interrupted half-way, and what it should become."""
    wanted = tmp_path / "wanted"
    wanted.mkdir()
    search(scene, wanted / "s.gpkg", model)
    out = tmp_path / "s.gpkg"
    with monkeypatch.context() as patched:
        stop_after(patched, 9)
        with pytest.raises(Halt):
            search(scene, out, model, resume=True)
    assert not out.exists()
    assert json.loads((work_path(out) / "journal.json").read_text())["rows_done"] >= 1
    return out, wanted / "s.gpkg"


def same(out, wanted):
    return all(
        out.with_suffix(s).read_bytes() == wanted.with_suffix(s).read_bytes()
        for s in (".gpkg", ".tif")
    )


def said(caplog):
    return " ".join(record.getMessage() for record in caplog.records)


def test_interrupted_work_goes_on_to_the_same_bytes(broken_off, scene, model, caplog):
    out, wanted = broken_off
    with caplog.at_level(logging.INFO, logger="smokegeo"):
        search(scene, out, model, resume=True)
    assert same(out, wanted)
    assert "going on after" in said(caplog)
    assert not work_path(out).exists()


def test_interrupted_again_and_again_it_still_ends_in_the_same_bytes(
    broken_off, scene, model, monkeypatch
):
    out, wanted = broken_off
    with monkeypatch.context() as patched:
        for count in (0, 3, 14):
            stop_after(patched, count)
            with pytest.raises(Halt):
                search(scene, out, model, resume=True)
    search(scene, out, model, resume=True)
    assert same(out, wanted)


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"tile": 40}, "tiles"), ({"tta": "flip"}, "network"), ({"scale": 0.5}, "units")],
)
def test_work_with_other_settings_is_started_afresh(
    broken_off, scene, model, change, reason, caplog
):
    out, wanted = broken_off
    with caplog.at_level(logging.INFO, logger="smokegeo"):
        search(scene, out, model, resume=True, **change)
    assert f"is of another run ({reason}); starting afresh" in said(caplog)
    assert "going on" not in said(caplog)
    assert not same(out, wanted)


def test_work_of_another_model_is_started_afresh(broken_off, scene, tmp_path, caplog):
    out, wanted = broken_off
    other = save_toy(tmp_path / "other.safetensors", seed=3)
    with caplog.at_level(logging.INFO, logger="smokegeo"):
        search(scene, out, other, resume=True)
    assert "is of another run (model); starting afresh" in said(caplog)
    assert not same(out, wanted)


def test_work_on_a_scene_that_has_changed_is_started_afresh(broken_off, scene, model, caplog):
    out, wanted = broken_off
    write_scene(scene, landscape(6, (100, 120), seed=5), nodata=0)
    with caplog.at_level(logging.INFO, logger="smokegeo"):
        search(scene, out, model, resume=True)
    assert "is of another run (scene); starting afresh" in said(caplog)
    assert not same(out, wanted)


def test_work_with_another_nodata_is_started_afresh(scene, model, tmp_path, monkeypatch, caplog):
    out = tmp_path / "s.gpkg"
    with monkeypatch.context() as patched:
        stop_after(patched, 9)
        with pytest.raises(Halt):
            search(scene, out, model, resume=True, nodata=0)
    search(scene, out, model, resume=True, nodata=3000)
    assert "starting afresh" in said(caplog)


def test_work_on_an_array_cannot_be_resumed(scene, model, tmp_path):
    with pytest.raises(UsageError, match="only a scene in a file"):
        search(read_cube(scene), tmp_path / "s.gpkg", model, resume=True)


def test_without_resume_nothing_is_kept_and_the_way_is_said(
    scene, model, tmp_path, monkeypatch, caplog
):
    stop_after(monkeypatch, 9)
    with pytest.raises(Halt):
        search(scene, tmp_path / "s.gpkg", model)
    assert sorted(tmp_path.iterdir()) == [scene.parent]
    assert "with --resume it could go on" in said(caplog)


# From the command line


def test_one_scene_by_the_command_line_is_that_of_python(run, scene, model, tmp_path):
    out, prob, web_map = (tmp_path / name for name in ("c.gpkg", "c.tif", "c.html"))
    result = run(
        "predict", scene, "--out", out, "--prob", prob, "--map", web_map, "--model", model, "-q"
    )
    assert result.exit_code == 0, result.output
    frame = smokegeo.predict(
        scene, tmp_path / "p.gpkg", model, prob=tmp_path / "p.tif", web_map=tmp_path / "p.html"
    )
    for suffix in (".gpkg", ".tif", ".html"):
        here, there = tmp_path / f"c{suffix}", tmp_path / f"p{suffix}"
        assert here.read_bytes() == there.read_bytes(), suffix
    (line,) = result.stdout.splitlines()
    assert line.startswith(f"scene.tif: {len(frame)} smoke polygons, ")
    assert "1.7 % of it could not be analysed. Wrote " in line
    assert line.endswith(f"{out}, {prob}, {web_map}.")


def test_one_scene_that_fails_does_not_stop_the_others(run, scene, model, tmp_path):
    broken = scene.with_name("broken.tif")
    broken.write_bytes(b"<html>")
    last = shutil.copy(scene, scene.with_name("last.tif"))
    folder = tmp_path / "results"
    result = run(
        "predict", scene, broken, last, "--out-dir", folder, "--format", "fgb", "--model", model
    )
    assert result.exit_code == InputError.exit_code
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["last.fgb", "last.qml", "scene.fgb", "scene.qml"]
    lines = result.stdout.splitlines()
    assert lines[0].startswith("scene.tif: ")
    assert lines[1].startswith("last.tif: ")
    assert lines[2] == "2 of 3 scenes done."
    assert lines[3].startswith(f"  failed: {broken}: broken.tif is a web page")
    assert len(lines) == 4
    assert "Error: broken.tif is a web page" in result.stderr


def test_all_scenes_well_is_exit_code_0(run, scene, model, tmp_path):
    other = shutil.copy(scene, scene.with_name("other.tif"))
    result = run("predict", scene, other, "--out-dir", tmp_path / "r", "--model", model, "-q")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "2 of 2 scenes done."
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("args", "fact"),
    [
        (("a.tif",), "--out FILE, or --out-dir FOLDER"),
        (("a.tif", "b.tif", "--out", "s.gpkg"), "Several scenes need --out-dir"),
        (("a.tif", "--out", "s.gpkg", "--out-dir", "r"), "drop --out"),
        (("a.tif", "--out-dir", "r", "--prob", "p.tif"), "--prob names a folder"),
        (("a.tif", "--out-dir", "r", "--map", "m.html"), "--map names a folder"),
        (("a.tif", "--out", "s.gpkg", "--tile", "64", "--threshold", "0"), "threshold"),
    ],
)
def test_a_wrong_command_is_refused_at_once(run, args, fact, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("predict", *args)
    assert result.exit_code == 2
    assert fact in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_scenes_whose_outputs_would_meet_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"a/x\.jp2 and a/x\.tif would both .* Rename one"):
        outputs_for(["a/x.tif", "a/x.jp2"], Folders(tmp_path), overwrite=False)


def test_an_output_that_is_another_scene_of_the_run_is_refused(scene, tmp_path):
    other = Path(shutil.copy(scene, scene.with_name("scene_prob.tif")))
    folders = Folders(tmp_path, probability=scene.parent)
    with pytest.raises(
        UsageError, match=r"scene_prob\.tif, an output of .*scene\.tif, is the scene"
    ):
        outputs_for([str(scene), str(other)], folders, overwrite=True)


def test_a_scene_that_failed_is_named_once(run, scene, model, tmp_path):
    gone = tmp_path / "gone.tif"
    result = run("predict", scene, gone, "--out-dir", tmp_path / "out", "--model", model)
    assert f"  failed: {gone}: no such file." in result.stdout.splitlines()


def test_outputs_are_named_after_their_scenes(tmp_path):
    names = ["a/x.tif", "S2B_T32.SAFE/", "b/LC08_2020.1", "pic.JPG", "cube.hdr"]
    jobs = outputs_for(names, Folders(tmp_path / "new" / "folder", ".fgb"), overwrite=False)
    assert [outputs.polygons.name for _, outputs in jobs] == [
        "x.fgb",
        "S2B_T32.fgb",
        "LC08_2020.1.fgb",
        "pic.fgb",
        "cube.fgb",
    ]
    (tmp_path / "x.fgb").write_text("mine")
    with pytest.raises(UsageError, match="cannot be made"):
        outputs_for(names, Folders(tmp_path / "x.fgb" / "deep"), overwrite=False)


def test_probabilities_and_maps_of_several_scenes_go_into_folders(run, scene, model, tmp_path):
    other = shutil.copy(scene, scene.with_name("other.tif"))
    command = (
        "predict", scene, other, "--out-dir", tmp_path / "r", "--model", model, "-q",
        "--prob", scene.parent, "--map", tmp_path / "maps" / "today",
    )  # fmt: skip
    result = run(*command)
    assert result.exit_code == 0, result.output
    for name in ("scene", "other"):
        assert (scene.parent / f"{name}_prob.tif").is_file()
        assert (tmp_path / "maps" / "today" / f"{name}.html").is_file()
        assert (tmp_path / "r" / f"{name}.gpkg").is_file()
    assert "2 kept" in run(*command, "--resume").stdout
    (tmp_path / "maps" / "today" / "other.html").unlink()
    refused = run(*command, "--resume")
    assert refused.exit_code == 2
    for left in (tmp_path / "r" / "other.gpkg", scene.parent / "other_prob.tif"):
        assert f"{left} exists, but" in refused.stderr
        assert "Delete the former" in refused.stderr
        left.unlink()
        refused = run(*command, "--resume")
    assert refused.stdout.splitlines()[-1] == "1 of 2 scenes done, 1 kept."


@pytest.fixture
def partly_failed(run, scene, model, tmp_path):
    """A command for three scenes of which the second failed and is mended now; its folder."""
    second = scene.with_name("second.tif")
    second.write_bytes(b"<html>")
    last = shutil.copy(scene, scene.with_name("last.tif"))
    command = ("predict", scene, second, last, "--out-dir", tmp_path / "r", "--model", model, "-q")
    assert run(*command, "--resume").exit_code == InputError.exit_code
    shutil.copy(scene, second)
    return command, tmp_path / "r"


def test_what_is_done_already_is_kept_when_a_run_goes_on(run, partly_failed):
    command, folder = partly_failed
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert before.keys() == {"scene.gpkg", "last.gpkg"}
    result = run(*command, "--resume")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].endswith(f"scene.tif: {folder / 'scene.gpkg'} exists already and is kept.")
    assert lines[1].endswith(f"last.tif: {folder / 'last.gpkg'} exists already and is kept.")
    assert lines[2].startswith("second.tif: ")
    assert lines[3:] == ["1 of 3 scenes done, 2 kept."]
    after = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert after == {**before, "second.gpkg": after["second.gpkg"]}


@pytest.mark.parametrize("dask", [(), ("--dask", "tcp://127.0.0.1:9")])
def test_where_all_is_done_already_nothing_is_begun(run, partly_failed, dask):
    command, _ = partly_failed
    assert run(*command, "--resume").exit_code == 0
    result = run(*command, "--resume", *dask)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "0 of 3 scenes done, 3 kept."


def test_a_result_that_exists_is_in_the_way_unless_a_run_goes_on(run, partly_failed):
    command, folder = partly_failed
    (folder / "scene.gpkg").unlink()
    result = run(*command)
    assert result.exit_code == UsageError.exit_code
    assert "last.gpkg exists already. Choose another name or pass --overwrite." in result.stderr
    assert not (folder / "scene.gpkg").exists()  # said before the first scene is begun
    again = run(*command, "--resume", "--overwrite")
    assert again.stdout.splitlines()[-1] == "3 of 3 scenes done."


def test_a_link_to_nothing_is_no_result(run, partly_failed):
    command, folder = partly_failed
    (folder / "second.gpkg").symlink_to(folder / "gone")
    result = run(*command, "--resume")
    assert result.exit_code == UsageError.exit_code
    assert "second.gpkg exists already" in result.stderr


def test_an_output_that_was_named_is_never_kept_for_a_result(run, scene, model, tmp_path):
    (tmp_path / "mine.gpkg").write_text("mine")
    result = run("predict", scene, "--out", tmp_path / "mine.gpkg", "--model", model, "--resume")
    assert result.exit_code == UsageError.exit_code
    assert "exists already" in result.stderr


def test_any_failure_of_a_scene_is_told_in_one_line():
    own = InputError("x.tif is empty.")
    assert as_failure("x.tif", own) is own
    strange = as_failure("x.tif", ZeroDivisionError("division by zero"))
    assert strange.exit_code == 1
    assert str(strange) == (
        "x.tif: internal error, ZeroDivisionError: division by zero (please report)."
    )


def test_the_exit_code_is_that_of_the_first_failure():
    failures = (("a", InputError("a")), ("b", UsageError("b")))
    assert Summary(0, failures).exit_code == 3
    assert Summary(0, ()).exit_code == 0


# Polygons from the raster


def test_vectorize_draws_what_predict_drew(run, scene, model, tmp_path):
    prob = tmp_path / "p.tif"
    for number, options in enumerate(
        ((), ("--threshold", "0.5"), ("--edges", "pixel", "--min-area", "3000"), ("--core", "0.6"))
    ):
        first, again = tmp_path / f"{number}a.gpkg", tmp_path / f"{number}b.gpkg"
        args = ("predict", scene, "--out", first, "--model", model, *options)
        predicted = run(*args, "--prob", prob, "--overwrite")
        assert predicted.exit_code == 0
        result = run("vectorize", prob, "--out", again, *options)
        assert result.exit_code == 0, result.output
        words = predicted.stdout.partition(" Wrote ")[0]
        assert re.search(r"polygons?, [\d.]+ k?m2; 1\.7 % of it could not be analysed\.$", words)
        assert result.stdout == f"p.tif{words.removeprefix('scene.tif')} Wrote {again}.\n"
        wanted = geopandas.read_file(first, layer="smoke")
        assert len(wanted) > 0
        assert_geodataframe_equal(geopandas.read_file(again, layer="smoke"), wanted)


def test_vectorize_works_on_floats_of_other_programs(run, scene, model, tmp_path):
    ours, theirs = tmp_path / "p.tif", tmp_path / "floats.tif"
    smokegeo.predict(scene, tmp_path / "a.gpkg", model, prob=ours)
    with rasterio.open(ours) as src:
        stored = src.read(1)
    floats = np.where(stored == 255, np.nan, stored / np.float32(250))[None].astype(np.float32)
    write_scene(theirs, floats, None)
    assert run("vectorize", theirs, "--out", tmp_path / "x.gpkg").exit_code == 2  # no threshold
    result = run("vectorize", theirs, "--out", tmp_path / "b.gpkg", "--threshold", "0.52")
    assert result.exit_code == 0, result.output
    columns = ["id", "area_m2", "mean_prob", "max_prob", "pixels", "touches_nodata", "geometry"]
    found = geopandas.read_file(tmp_path / "b.gpkg", layer="smoke")
    assert_geodataframe_equal(
        found[columns], geopandas.read_file(tmp_path / "a.gpkg", layer="smoke")[columns]
    )
    assert set(found["source"]) == {"floats.tif"}
