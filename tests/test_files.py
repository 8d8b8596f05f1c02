"""Files and folders appear whole or not at all."""

# A block that fails halfway is what these tests are about.
# ruff: noqa: PT012, SIM117

import hashlib
import os
import stat
import subprocess
import sys
from collections import namedtuple

import pytest

from smokegeo import files
from smokegeo.errors import InputError, OutputError, UsageError
from smokegeo.files import (
    atomic_file,
    atomic_files,
    atomic_folder,
    check_output,
    need_space,
    same_file,
    sha256,
)

FAILURES = [KeyboardInterrupt, SystemExit, RuntimeError, InputError]


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


class TestAtomicFile:
    def test_appears_when_the_block_succeeds(self, tmp_path):
        target = tmp_path / "out.gpkg"
        with atomic_file(target) as part:
            part.write_text("all of it")
            assert not target.exists()
        assert target.read_text() == "all of it"
        assert listing(tmp_path) == ["out.gpkg"]

    def test_is_written_beside_its_place_with_its_suffix(self, tmp_path):
        with atomic_file(tmp_path / "a.b.geojson") as part:
            assert part.parent == tmp_path
            assert part.suffix == ".geojson"
            assert part.name.startswith(".")
            part.touch()

    def test_replaces_an_older_file(self, tmp_path):
        target = tmp_path / "out.tif"
        target.write_text("old")
        with atomic_file(target) as part:
            part.write_text("new")
            assert target.read_text() == "old"
        assert target.read_text() == "new"

    @pytest.mark.parametrize("failure", FAILURES)
    def test_leaves_nothing_on_failure(self, tmp_path, failure):
        with pytest.raises(failure), atomic_file(tmp_path / "out.tif") as part:
            part.write_text("half")
            raise failure
        assert listing(tmp_path) == []

    @pytest.mark.parametrize("failure", FAILURES)
    def test_keeps_the_old_content_on_failure(self, tmp_path, failure):
        target = tmp_path / "out.tif"
        target.write_text("old")
        with pytest.raises(failure), atomic_file(target) as part:
            part.write_text("half")
            raise failure
        assert target.read_text() == "old"
        assert listing(tmp_path) == ["out.tif"]

    @pytest.mark.parametrize("extra", [".aux.xml", "-journal", "-wal"])
    def test_removes_what_gdal_left_beside_a_half_written_file(self, tmp_path, extra):
        with pytest.raises(RuntimeError), atomic_file(tmp_path / "out.gpkg") as part:
            part.write_text("half")
            part.with_name(part.name + extra).write_text("side")
            raise RuntimeError
        assert listing(tmp_path) == []

    def test_a_full_disk_is_an_output_error(self, tmp_path):
        with pytest.raises(OutputError, match=r"out\.tif: cannot be written \(No space left"):
            with atomic_file(tmp_path / "out.tif") as part:
                part.write_text("half")
                raise OSError(28, "No space left on device")
        assert listing(tmp_path) == []

    def test_a_block_that_writes_nothing_is_an_output_error(self, tmp_path):
        with pytest.raises(OutputError), atomic_file(tmp_path / "out.tif"):
            pass
        assert listing(tmp_path) == []

    def test_a_folder_in_the_way_is_an_output_error(self, tmp_path):
        (tmp_path / "out.tif").mkdir()
        with pytest.raises(OutputError), atomic_file(tmp_path / "out.tif") as part:
            part.write_text("x")
        assert listing(tmp_path) == ["out.tif"]

    @pytest.mark.skipif(os.name != "posix", reason="asks for processes")
    def test_clears_what_a_killed_run_left_of_the_same_output_only(self, tmp_path):
        script = """if True:
            import os, signal, sys
            from contextlib import ExitStack
            from pathlib import Path
            from smokegeo.files import atomic_file
            with ExitStack() as stack:
                for name in ("out.gpkg", "other.gpkg"):
                    part = stack.enter_context(atomic_file(Path(sys.argv[1]) / name))
                    part.write_text("half")
                    Path(f"{part}-journal").write_text("half")
                os.kill(os.getpid(), signal.SIGKILL)
        """
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
        assert len(listing(tmp_path)) == 4
        with atomic_file(tmp_path / "out.gpkg") as part:
            part.write_text("mine")
            with atomic_file(tmp_path / "out.gpkg") as beside:  # of a run that goes on
                beside.write_text("another's")
            assert part.exists()
        assert len(listing(tmp_path)) == 3  # out.gpkg, and two of the other
        with atomic_file(tmp_path / "other.gpkg") as part:
            part.touch()
        assert listing(tmp_path) == ["other.gpkg", "out.gpkg"]

    def test_takes_the_statistics_of_the_raster_it_replaces_away(self, tmp_path):
        target, others = tmp_path / "p.tif", ("p.tif.aux.xml", "p.tif.ovr", "p.tif.msk")
        for name in (*others, "q.tif.ovr", "p.txt"):
            (tmp_path / name).touch()
        with atomic_file(target) as part:
            part.touch()
        assert len(listing(tmp_path)) == 6  # nothing was replaced
        with pytest.raises(RuntimeError), atomic_file(target) as part:
            raise RuntimeError
        assert len(listing(tmp_path)) == 6
        with atomic_file(target) as part:
            part.touch()
        assert listing(tmp_path) == ["p.tif", "p.txt", "q.tif.ovr"]


class TestAtomicFiles:
    def test_appear_together(self, tmp_path):
        one, two = tmp_path / "a.tif", tmp_path / "b.gpkg"
        with atomic_files((one, two)) as (first, second):
            first.write_text("1")
            second.write_text("2")
            assert not one.exists()
        assert (one.read_text(), two.read_text()) == ("1", "2")

    @pytest.mark.parametrize("failure", FAILURES)
    def test_leave_nothing_if_one_fails(self, tmp_path, failure):
        with pytest.raises(failure):
            with atomic_files((tmp_path / "a.tif", tmp_path / "b.gpkg")) as (first, _):
                first.write_text("1")
                raise failure
        assert listing(tmp_path) == []

    def test_are_taken_back_if_one_finds_no_place(self, tmp_path):
        (tmp_path / "b.gpkg").mkdir()
        with pytest.raises(OutputError, match=r"b\.gpkg: cannot be written"):
            with atomic_files((tmp_path / "a.tif", tmp_path / "b.gpkg")) as parts:
                for part in parts:
                    part.touch()
        assert listing(tmp_path) == ["b.gpkg"]

    @pytest.mark.parametrize("links", [True, False])
    @pytest.mark.parametrize("failing", [0, 1, 2])
    def test_put_back_what_was_there_if_one_finds_no_place(
        self, tmp_path, monkeypatch, failing, links
    ):
        paths = [tmp_path / name for name in ("a.tif", "b.html", "c.gpkg")]
        for path in paths:
            path.write_text("old")
        real = os.replace

        def refuse(source, destination):
            if destination == paths[failing] and "new" in source.read_text():
                raise PermissionError(13, "Permission denied")
            real(source, destination)

        def no_links(*args, **kwargs):
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(files.os, "replace", refuse)
        if not links:
            monkeypatch.setattr(files.os, "link", no_links)
        with pytest.raises(OutputError, match=rf"{paths[failing].name}: cannot be written"):
            with atomic_files(paths) as parts:
                for part in parts:
                    part.write_text("new")
        assert [path.read_text() for path in paths] == ["old"] * 3
        assert listing(tmp_path) == ["a.tif", "b.html", "c.gpkg"]

    @pytest.mark.parametrize("links", [True, False])
    def test_leave_nothing_of_what_they_replace(self, tmp_path, monkeypatch, links):
        def no_links(*args, **kwargs):
            raise OSError(95, "Operation not supported")

        if not links:
            monkeypatch.setattr(files.os, "link", no_links)
        paths = [tmp_path / name for name in ("a.tif", "b.html", "c.gpkg")]
        for path in paths[:2]:
            path.write_text("old")
        with atomic_files(paths) as parts:
            for part in parts:
                part.write_text("new")
        assert [path.read_text() for path in paths] == ["new"] * 3
        assert listing(tmp_path) == ["a.tif", "b.html", "c.gpkg"]

    def test_never_move_a_folder_away(self, tmp_path):
        (tmp_path / "a.tif").mkdir()
        with pytest.raises(OutputError, match=r"a\.tif: cannot be written"):
            with atomic_files((tmp_path / "a.tif", tmp_path / "b.gpkg")) as parts:
                for part in parts:
                    part.touch()
        assert listing(tmp_path) == ["a.tif"]
        assert (tmp_path / "a.tif").is_dir()

    @pytest.mark.skipif(os.name != "posix", reason="asks how a file was opened")
    def test_are_synced_through_handles_that_may_write_and_so_is_their_folder(
        self, tmp_path, monkeypatch
    ):
        import fcntl

        synced = []

        def note(handle):
            mode = fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE
            synced.append((stat.S_ISDIR(os.fstat(handle).st_mode), mode == os.O_RDWR))

        monkeypatch.setattr(files.os, "fsync", note)
        with atomic_files((tmp_path / "a.tif", tmp_path / "b.gpkg")) as parts:
            for part in parts:
                part.touch()
        assert synced == [(False, True), (False, True), (True, False)]


def test_the_same_file_is_known_by_any_of_its_names(tmp_path):
    one, other, hard, soft = (tmp_path / name for name in ("one", "other", "hard", "soft"))
    one.touch()
    other.touch()
    hard.hardlink_to(one)
    soft.symlink_to(one)
    assert all(same_file(path, one) for path in (one, hard, soft))
    assert not same_file(other, one)
    assert not same_file(tmp_path / "none", one)


class TestAtomicFolder:
    def test_appears_when_the_block_succeeds(self, tmp_path):
        target = tmp_path / "deep" / "set"
        with atomic_folder(target) as part:
            assert listing(part) == []
            (part / "a.txt").write_text("a")
            (part / "sub").mkdir()
            assert not target.exists()
        assert listing(target) == ["a.txt", "sub"]
        assert listing(tmp_path / "deep") == ["set"]

    @pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
    def test_others_may_read_it(self, tmp_path):
        with atomic_folder(tmp_path / "set"):
            pass
        umask = os.umask(0)
        os.umask(umask)
        assert (tmp_path / "set").stat().st_mode & 0o777 == 0o755 & ~umask

    @pytest.mark.parametrize("failure", FAILURES)
    @pytest.mark.parametrize("overwrite", [False, True])
    def test_leaves_nothing_on_failure(self, tmp_path, failure, overwrite):
        with (
            pytest.raises(failure),
            atomic_folder(tmp_path / "set", overwrite=overwrite) as part,
        ):
            (part / "half").write_text("x")
            raise failure
        assert listing(tmp_path) == []

    @pytest.mark.parametrize("failure", FAILURES)
    def test_keeps_the_old_content_on_failure(self, tmp_path, failure):
        target = tmp_path / "set"
        target.mkdir()
        (target / "old").write_text("old")
        with pytest.raises(failure), atomic_folder(target, overwrite=True) as part:
            (part / "half").write_text("x")
            raise failure
        assert listing(tmp_path) == ["set"]
        assert listing(target) == ["old"]

    def test_keeps_the_old_content_if_the_last_step_fails(self, tmp_path, monkeypatch):
        target = tmp_path / "set"
        target.mkdir()
        (target / "old").write_text("old")
        real = os.replace

        def refuse(source, destination):
            if source.name == "new":
                raise PermissionError(13, "Permission denied")
            real(source, destination)

        monkeypatch.setattr(files.os, "replace", refuse)
        with pytest.raises(OutputError, match="Permission denied"):
            with atomic_folder(target, overwrite=True) as part:
                (part / "new.txt").write_text("x")
        assert listing(tmp_path) == ["set"]
        assert listing(target) == ["old"]

    @pytest.mark.parametrize("failure", [KeyboardInterrupt, SystemExit])
    @pytest.mark.parametrize("link", [False, True])
    def test_keeps_the_old_content_if_stopped_between_the_last_steps(
        self, tmp_path, monkeypatch, failure, link
    ):
        target = tmp_path / "set"
        (tmp_path / "real").mkdir()
        (tmp_path / "real" / "old").write_text("old")
        if link:
            target.symlink_to("real")
        else:
            (tmp_path / "real").rename(target)
        before, real = listing(tmp_path), os.replace

        def stop(source, destination):
            real(source, destination)
            if destination.name == "old":
                raise failure

        monkeypatch.setattr(files.os, "replace", stop)
        with pytest.raises(failure), atomic_folder(target, overwrite=True) as part:
            (part / "new.txt").write_text("x")
        assert listing(tmp_path) == before
        assert listing(target) == ["old"]

    def test_keeps_the_new_content_if_stopped_after_the_last_step(self, tmp_path, monkeypatch):
        (tmp_path / "set").mkdir()
        (tmp_path / "set" / "old").touch()
        real = os.replace

        def stop(source, destination):
            real(source, destination)
            if source.name == "new":
                raise KeyboardInterrupt

        monkeypatch.setattr(files.os, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            with atomic_folder(tmp_path / "set", overwrite=True) as part:
                (part / "new.txt").touch()
        assert listing(tmp_path / "set") == ["new.txt"]
        assert listing(tmp_path) == ["set"]

    def test_replaces_only_a_folder_with_the_marks_of_what_it_should_hold(self, tmp_path):
        (tmp_path / "set").mkdir()
        (tmp_path / "set" / "a.json").touch()
        with pytest.raises(UsageError, match=r"something else \(no b\.tif\), and stays as it is"):
            atomic_folder(tmp_path / "set", overwrite=True, marks=("a.json", "b.tif")).__enter__()
        assert listing(tmp_path / "set") == ["a.json"]
        with atomic_folder(tmp_path / "set", overwrite=True, marks=("a.json",)) as part:
            (part / "new").touch()
        assert listing(tmp_path / "set") == ["new"]

    def test_refuses_to_replace_without_overwrite(self, tmp_path):
        (tmp_path / "set").mkdir()
        (tmp_path / "set" / "mine").touch()
        with pytest.raises(UsageError, match=r"set exists already.*--overwrite"):
            atomic_folder(tmp_path / "set").__enter__()
        assert listing(tmp_path / "set") == ["mine"]

    def test_fills_an_empty_folder_without_overwrite(self, tmp_path):
        (tmp_path / "set").mkdir()
        with atomic_folder(tmp_path / "set") as part:
            (part / "a").touch()
        assert listing(tmp_path / "set") == ["a"]

    def test_replaces_with_overwrite_and_keeps_nothing_old(self, tmp_path):
        (tmp_path / "set").mkdir()
        (tmp_path / "set" / "old").touch()
        with atomic_folder(tmp_path / "set", overwrite=True) as part:
            (part / "new").touch()
        assert listing(tmp_path / "set") == ["new"]
        assert listing(tmp_path) == ["set"]

    @pytest.mark.parametrize("overwrite", [False, True])
    def test_never_replaces_a_file(self, tmp_path, overwrite):
        (tmp_path / "set").write_text("mine")
        with pytest.raises(UsageError):
            atomic_folder(tmp_path / "set", overwrite=overwrite).__enter__()
        assert (tmp_path / "set").read_text() == "mine"

    def test_never_deletes_what_a_link_points_to(self, tmp_path):
        (tmp_path / "real").mkdir()
        (tmp_path / "real" / "mine").touch()
        (tmp_path / "set").symlink_to(tmp_path / "real")
        with atomic_folder(tmp_path / "set", overwrite=True) as part:
            (part / "new").touch()
        assert listing(tmp_path / "set") == ["new"]
        assert listing(tmp_path / "real") == ["mine"]

    def test_a_file_where_a_parent_folder_should_be_is_an_output_error(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(OutputError, match="cannot be made"):
            atomic_folder(tmp_path / "file" / "set").__enter__()

    def test_takes_a_path_from_the_working_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with atomic_folder(files.Path("set")) as part:
            (part / "a").touch()
        assert listing(tmp_path / "set") == ["a"]


class TestCheckOutput:
    def test_accepts_a_new_file(self, tmp_path):
        check_output(tmp_path / "out.gpkg")
        assert listing(tmp_path) == []

    def test_refuses_a_missing_folder(self, tmp_path):
        with pytest.raises(UsageError, match=r"folder .*nowhere does not exist"):
            check_output(tmp_path / "nowhere" / "out.gpkg")

    def test_refuses_an_existing_file_unless_told(self, tmp_path):
        (tmp_path / "out.gpkg").touch()
        with pytest.raises(UsageError, match=r"exists already.*--overwrite"):
            check_output(tmp_path / "out.gpkg")
        check_output(tmp_path / "out.gpkg", overwrite=True)

    @pytest.mark.parametrize("overwrite", [False, True])
    def test_refuses_a_folder(self, tmp_path, overwrite):
        (tmp_path / "out.gpkg").mkdir()
        with pytest.raises(OutputError, match="is a folder"):
            check_output(tmp_path / "out.gpkg", overwrite=overwrite)

    def test_refuses_a_folder_without_permission(self, tmp_path, monkeypatch):
        monkeypatch.setattr(files.os, "access", lambda path, mode: False)
        with pytest.raises(OutputError, match="no permission"):
            check_output(tmp_path / "out.gpkg")

    @pytest.mark.parametrize("suffix", ["-wal", "-journal"])
    def test_refuses_a_geopackage_that_another_program_writes(self, tmp_path, suffix):
        (tmp_path / "s.gpkg").touch()
        changes = tmp_path / f"s.gpkg{suffix}"
        changes.touch()  # as QGIS leaves it where it only looks
        check_output(tmp_path / "s.gpkg", overwrite=True)
        changes.write_text("changes")
        with pytest.raises(OutputError, match=r"is open in another program .*Close it there\.$"):
            check_output(tmp_path / "s.gpkg", overwrite=True)


class TestNeedSpace:
    def test_compares_with_the_free_space_of_the_nearest_folder(self, tmp_path, monkeypatch):
        asked = []

        def usage(folder):
            asked.append(folder)
            return namedtuple("usage", "free")(2_000_000_000)

        monkeypatch.setattr(files.shutil, "disk_usage", usage)
        need_space(tmp_path / "not" / "yet", 2_000_000_000)
        assert asked == [tmp_path]
        with pytest.raises(OutputError, match=r"2\.0 GB free, about 9\.3 GB needed"):
            need_space(tmp_path, 9_300_000_000)

    def test_counts_little_room_in_megabytes(self, tmp_path, monkeypatch):
        usage = namedtuple("usage", "free")(1_200_000)
        monkeypatch.setattr(files.shutil, "disk_usage", lambda _: usage)
        with pytest.raises(OutputError, match=r"1\.2 MB free, about 32\.0 MB needed"):
            need_space(tmp_path, 32_000_000)


@pytest.mark.parametrize("content", [b"", b"smoke", bytes(3_000_000)])
def test_sha256_is_that_of_the_content(tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    assert sha256(tmp_path / "f") == hashlib.sha256(content).hexdigest()
