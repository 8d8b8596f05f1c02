"""A Dask cluster makes the same map as one process, and outlives its workers."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyogrio
import pytest
from toy_models import save_toy
from toy_scenes import damage_block, landscape, write_scene

import smokegeo.cluster
from smokegeo.cluster import predict_on_cluster
from smokegeo.engine import Effort
from smokegeo.errors import InputError, UsageError
from smokegeo.pipeline import Outline, Request, predict_scene
from smokegeo.scene.options import SceneOptions
from smokegeo.work import Work
from smokegeo.writing.outputs import Outputs

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("scene") / "scene.tif"
    return write_scene(path, landscape(size=(300, 260)))


@pytest.fixture(scope="module")
def request_(tmp_path_factory) -> Request:
    model = save_toy(tmp_path_factory.mktemp("model") / "toy.safetensors")
    return Request(
        model=model,
        effort=Effort(threads=1),
        outline=Outline(threshold=0.5),
        yes=True,
    )


@pytest.fixture
def small_tasks(monkeypatch):
    """Make tasks of one row of tiles each, so that there are several."""
    monkeypatch.setattr(smokegeo.cluster, "_TILES_PER_TASK", 1)


class Cluster:
    """A real scheduler and two real workers, each a process of its own on the loopback."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"]
        self.processes = [self._start("dask_scheduler", *options)]
        deadline = time.monotonic() + 60
        while not self.file.exists():
            if time.monotonic() > deadline:
                raise TimeoutError("the scheduler did not start")
            time.sleep(0.1)
        worker = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        self.processes += [self._start("dask_worker", *worker) for _ in range(2)]

    def _start(self, program: str, *options: str) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *options]
        command += ["--scheduler-file", str(self.file)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def address(self) -> str:
        return json.loads(self.file.read_text())["address"]

    def wait_for_workers(self) -> None:
        from distributed import Client

        with Client(self.address, timeout=60) as client:
            client.wait_for_workers(2, timeout=120)

    def kill_a_worker(self) -> None:
        os.kill(self.processes[1].pid, signal.SIGKILL)

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """One cluster for all: what the test that kills a worker leaves is enough for the others."""
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        running.wait_for_workers()
        yield running
    finally:
        running.close()


def test_a_killed_worker_costs_a_retry_and_not_a_byte(
    cluster, scene, request_, small_tasks, tmp_path, monkeypatch
):
    alone = tmp_path / "alone.gpkg"
    predict_scene(scene, Outputs(alone), request_)
    killed = []
    save = Work.save

    def kill_once(work, rows_done, damaged=()):
        if not killed:
            cluster.kill_a_worker()
            killed.append(rows_done)
        save(work, rows_done, damaged)

    monkeypatch.setattr(Work, "save", kill_once)
    together = tmp_path / "together.gpkg"
    ((_, result),) = predict_on_cluster(
        [(str(scene), Outputs(together))], request_, cluster.address
    )
    assert killed == [1]  # the first row of several
    assert not isinstance(result, Exception)
    assert together.read_bytes() == alone.read_bytes()


def test_blocks_that_workers_could_not_read_are_counted(cluster, request_, small_tasks, tmp_path):
    blocks = {"tiled": True, "blockxsize": 64, "blockysize": 64, "compress": "deflate"}
    path = write_scene(tmp_path / "scene.tif", landscape(size=(300, 260)), **blocks)
    for row, column in ((0, 1), (3, 2)):
        damage_block(path, row, column)
    request = replace(request_, scene=SceneOptions(skip_damaged=True))
    alone, together = tmp_path / "alone.gpkg", tmp_path / "together.gpkg"
    predict_scene(path, Outputs(alone), request)
    list(predict_on_cluster([(str(path), Outputs(together))], request, cluster.address))
    for file in (alone, together):
        assert pyogrio.read_info(file, layer="smoke")["layer_metadata"]["damaged_blocks"] == "2"


def test_a_scene_that_fails_does_not_stop_the_others(
    cluster, scene, request_, small_tasks, tmp_path
):
    bad = tmp_path / "bad.tif"
    bad.write_bytes(b"no raster at all")
    jobs = [
        (str(bad), Outputs(tmp_path / "bad.gpkg")),
        (str(scene), Outputs(tmp_path / "first.gpkg")),
        (str(scene), Outputs(tmp_path / "second.gpkg")),
    ]
    found = predict_on_cluster(jobs, request_, cluster.address)
    results = {outputs.polygons.stem: result for (_, outputs), result in found}
    assert isinstance(results["bad"], InputError)
    assert len(results["first"].frame) == len(results["second"].frame) > 0
    assert (tmp_path / "first.gpkg").read_bytes() == (tmp_path / "second.gpkg").read_bytes()
    assert not (tmp_path / "bad.gpkg").exists()


def test_no_scheduler_is_said_in_one_line(scene, request_, tmp_path):
    job = (str(scene), Outputs(tmp_path / "smoke.gpkg"))
    with pytest.raises(UsageError, match="no Dask scheduler answers"):
        list(predict_on_cluster([job], request_, "tcp://127.0.0.1:9"))
