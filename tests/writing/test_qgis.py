"""What QGIS itself makes of our files and of our Processing script, where it is installed.

QGIS lives in a Python of its own, so each check is a small script run there.
"""

import functools
import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import rasterio
from PIL import Image
from rasterio.transform import Affine
from some_shapes import DEGREES, UTM, UTM_1, UTM_1_20M, UTM_20M, blobs, box, ring, some_shapes

from smokegeo.scene.georeference import PICTURE
from smokegeo.writing.polygons import place
from smokegeo.writing.write import write_polygons

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts" / "qgis"
PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")

START = """
import json, os, sys
from qgis.core import *
QgsApplication.setPrefixPath(os.environ.get("QGIS_PREFIX_PATH", "/usr"), True)
application = QgsApplication([], False)
application.initQgis()
said = []
QgsApplication.messageLog().messageReceived.connect(lambda text, tag, level: said.append(text))
"""

DESCRIBE = """
found = {}
for path in sys.argv[1:]:
    layer = QgsVectorLayer(path, "smoke", "ogr")
    renderer = layer.renderer()
    kind = renderer.type() if renderer else None
    classes = renderer.ranges() if kind == "graduatedSymbol" else []
    drawn = sum(renderer.symbolForValue(f["mean_prob"]) is not None for f in layer.getFeatures())
    found[os.path.basename(path)] = {
        "valid": layer.isValid(), "crs": layer.crs().authid(), "count": layer.featureCount(),
        "bad": sum(not feature.geometry().isGeosValid() for feature in layer.getFeatures()),
        "renderer": kind, "by": renderer.classAttribute() if classes else None,
        "labels": [entry.label() for entry in classes], "drawn": drawn,
        "labelled": layer.labelsEnabled(), "fields": [field.name() for field in layer.fields()],
        "types": {field.name(): field.typeName() for field in layer.fields()},
        "tip": [QgsExpression.replaceExpressionText(layer.mapTipTemplate(), context(layer, f))
                for f in layer.getFeatures()][:1],
        "layers": len(layer.dataProvider().subLayers()), "problems": said[:],
    }
    said.clear()
print(json.dumps(found))
"""

CONTEXT = """
def context(layer, feature):
    made = QgsExpressionContext()
    made.appendScope(QgsExpressionContextUtils.layerScope(layer))
    made.setFeature(feature)
    return made
"""


@functools.cache
def qgis_python():
    """The interpreter that has QGIS, or None."""
    for python in PYTHONS:
        if Path(python).exists():
            ran = subprocess.run([python, "-c", "import qgis.core"], capture_output=True)
            if ran.returncode == 0:
                return python
    return None


def in_qgis(script, *args, home):
    """Run a script in QGIS's Python, with settings of its own; return what it printed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment |= {"QT_QPA_PLATFORM": "offscreen", "HOME": str(home)}
    environment |= {"XDG_RUNTIME_DIR": str(home), "QGIS_CUSTOM_CONFIG_PATH": str(home)}
    # Python and Qt do not agree on who tidies up at the end, so nobody does.
    code = START + textwrap.dedent(script) + "\nsys.stdout.flush()\nos._exit(0)\n"
    command = [qgis_python(), "-c", code, *map(str, args)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


pytestmark = pytest.mark.skipif(qgis_python() is None, reason="QGIS is not installed")


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What QGIS says of every file, from one start of it."""
    folder = tmp_path_factory.mktemp("layers")
    plumes = some_shapes(
        box(0, 0, 200), ring(300, 0, 90, 20), box(0, 300, 3), mean_prob=[0.4999, 0.7, 1.0], edge=[0]
    )
    frames = {
        "utm": place(plumes, UTM_20M, UTM, source="s.tif").frame,
        "turned": place(plumes, UTM_20M @ Affine.rotation(30), UTM).frame,
        "degrees": place(plumes, Affine(1e-3, 0, 15, 0, -1e-3, 60), DEGREES).frame,
        "cut": place(plumes, UTM_1_20M, UTM_1).frame,
        "many": place(blobs(300), UTM_20M, UTM).frame,
        "empty": place(plumes, UTM_20M, UTM, min_area_m2=1e12).frame,
        "pixels": place(plumes, Affine.identity(), None).frame,
    }
    paths = []
    for name, frame in frames.items():
        for suffix in (".gpkg", ".geojson", ".fgb"):
            if suffix == ".geojson" and name == "pixels":
                continue
            path = folder / f"{name}{suffix}"
            write_polygons(frame, path, provenance={"a": "b"}, style_threshold=0.5)
            paths.append(path)
    before = sorted(path.name for path in folder.iterdir())
    found = in_qgis(CONTEXT + DESCRIBE, *paths, home=tmp_path_factory.mktemp("home"))
    assert sorted(path.name for path in folder.iterdir()) == before
    return found


def with_geometry(seen):
    """All but the empty GeoJSON, which has no kind of geometry, so no place and no style."""
    return {name: facts for name, facts in seen.items() if name != "empty.geojson"}


class TestLayers:
    def test_open_without_a_word(self, seen):
        assert len(seen) == 20
        assert all(facts["valid"] for facts in seen.values())
        assert {name: facts["problems"] for name, facts in seen.items() if facts["problems"]} == {}
        assert {facts["layers"] for facts in seen.values()} == {1}

    def test_lie_where_they_should(self, seen):
        for name, facts in with_geometry(seen).items():
            assert facts["crs"] == "EPSG:4326" or not name.endswith(".geojson")
        for suffix in (".gpkg", ".fgb"):
            assert seen[f"utm{suffix}"]["crs"] == seen[f"empty{suffix}"]["crs"] == "EPSG:32647"
            assert seen[f"cut{suffix}"]["crs"] == "EPSG:32601"
            assert seen[f"pixels{suffix}"]["crs"] == ""

    def test_hold_all_polygons_and_only_valid_ones(self, seen):
        wanted = {"many": 300, "empty": 0}
        for name, facts in seen.items():
            assert facts["count"] == wanted.get(name.split(".")[0], 3), name
            assert facts["bad"] == 0, name

    def test_are_styled_by_themselves_in_five_classes(self, seen):
        for name, facts in with_geometry(seen).items():
            assert (facts["renderer"], facts["by"]) == ("graduatedSymbol", "mean_prob"), name
            assert facts["labels"] == ["50–60 %", "60–70 %", "70–80 %", "80–90 %", "90–100 %"]
            assert facts["drawn"] == facts["count"], name
            assert not facts["labelled"]

    def test_have_typed_fields(self, seen):
        for name, facts in with_geometry(seen).items():
            assert [field for field in facts["fields"] if field != "fid"][:3] == [
                "id",
                "area_m2",
                "perimeter_m",
            ]
            if not name.endswith(".geojson"):
                assert facts["types"]["acquired"] == "DateTime", name
                assert facts["types"]["touches_edge"] == "Boolean", name

    def test_tell_of_a_plume_under_the_mouse(self, seen):
        for suffix in (".gpkg", ".geojson"):
            (tip,) = seen[f"utm{suffix}"]["tip"]
            assert "Smoke 1" in tip
            assert "km²" in tip
            assert "50 % (highest 90 %)" in tip
            assert "cut by the edge" in tip
            assert "not analysed" not in tip
        assert "40000 pixels" in seen["pixels.gpkg"]["tip"][0]


ALGORITHM = """
import importlib.util, time
spec = importlib.util.spec_from_file_location("smokegeo_predict", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

class Feedback(QgsProcessingFeedback):
    def __init__(self):
        super().__init__(False)
        self.lines, self.bar = [], []
        self.progressChanged.connect(self.bar.append)
    def pushInfo(self, text):
        self.lines.append(text)
        if text == "waiting":
            self.cancel()
    def pushWarning(self, text):
        self.lines.append(text)

def run(options):
    options["OUTPUT"] = QgsProcessingOutputLayerDefinition(options["OUTPUT"], QgsProject.instance())
    algorithm = module.SmokegeoPredict().create()
    context, feedback = QgsProcessingContext(), Feedback()
    project = QgsProject.instance()
    context.setProject(project)
    start = time.monotonic()
    try:
        results, good = algorithm.run(options, context, feedback, {}, False)
    except QgsProcessingException as error:
        return {"error": str(error), "lines": feedback.lines}
    facts = {"good": good, "results": results, "lines": feedback.lines, "bar": feedback.bar,
             "seconds": time.monotonic() - start, "style": None}
    for path, details in context.layersToLoadOnCompletion().items() if results else ():
        layer = QgsProcessingUtils.mapLayerFromString(path, context, True)
        details.postProcessor().postProcessLayer(layer, context, feedback)
        facts["style"] = layer.renderer().type()
    return facts
"""

#: A smokegeo that notes how it was called and copies a result to its place.
FAKE = """#!{python}
import json, os, shutil, signal, sys, time
from pathlib import Path
here = Path(__file__).parent
args = sys.argv[1:]
scene = Path(args[1]).stem
(here / f"{{scene}}.json").write_text(json.dumps(
    {{"args": args, "home": os.environ.get("PYTHONHOME"), "proj": os.environ.get("PROJ_LIB")}}))
def ended(*_):
    (here / f"{{scene}}.ended").touch()
    sys.exit(143)
signal.signal(signal.SIGTERM, ended)
if scene == "refused":
    print("reading", file=sys.stderr)
    print("Error: refused.tif has no coordinate system. Give it with --crs.", file=sys.stderr)
    sys.exit(3)
if scene == "endless":
    print("waiting", file=sys.stderr, flush=True)
    time.sleep(60)
if scene == "silent":
    sys.exit(0)
print("Warning: bands have no names", file=sys.stderr)
print("tiles: 1 of 4", file=sys.stderr)
print("tiles: 4 of 4", file=sys.stderr)
shutil.copyfile(here / "result.gpkg", args[args.index("--out") + 1])
"""


#: One start of QGIS serves all runs: name of the scene -> what the user chose.
RUNS = {
    "scene": {"MODEL": "m.safetensors", "THRESHOLD": 0.41234567, "MIN_AREA": 1234567.5},
    "plain": {},
    "refused": {},
    "silent": {},
    "endless": {},
    "lost": {"PROGRAM": "no-such-program"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A fake smokegeo, its result, and a small scene for each run."""
    folder = tmp_path_factory.mktemp("processing")
    (folder / "smokegeo").write_text(FAKE.format(python=sys.executable))
    (folder / "smokegeo").chmod(stat.S_IRWXU)
    frame = place(blobs(4), UTM_20M, UTM).frame
    write_polygons(frame, folder / "result.gpkg", provenance={}, style_threshold=0.5)
    for name in RUNS:
        write_scene(folder / f"{name}.tif", bands=1)
    return folder


@pytest.fixture(scope="module")
def runs(folder, tmp_path_factory):
    """What the algorithm did with each scene."""
    options = {
        name: {
            "INPUT": str(folder / f"{name}.tif"),
            "OUTPUT": str(folder / f"{name}.gpkg"),
            "PROGRAM": str(folder / "smokegeo"),
        }
        | chosen
        for name, chosen in RUNS.items()
    }
    script = ALGORITHM + textwrap.dedent("""
    os.environ["PYTHONHOME"] = os.environ["PROJ_LIB"] = "/of/qgis"
    found = {name: run(options) for name, options in json.loads(sys.argv[2]).items()}
    algorithm = module.SmokegeoPredict().create()
    found["about"] = {
        "names": [algorithm.displayName(), algorithm.group(), algorithm.id()],
        "help": algorithm.shortHelpString(),
        "parameters": {each.name(): [each.type(), bool(each.flags() & each.FlagOptional)]
                       for each in algorithm.parameterDefinitions()},
        "suffix": algorithm.parameterDefinition("OUTPUT").defaultFileExtension(),
        "program": algorithm.parameterDefinition("PROGRAM").defaultValue(),
    }
    print(json.dumps(found))
    """)
    arguments = (SCRIPTS / "smokegeo_predict.py", json.dumps(options))
    return in_qgis(script, *arguments, home=tmp_path_factory.mktemp("home"))


class TestProcessingScript:
    def called(self, folder, name):
        return json.loads((folder / f"{name}.json").read_text())

    def test_offers_these_parameters(self, runs):
        about = runs["about"]
        assert about["names"][:2] == ["Find smoke", "smokegeo"]
        assert about["parameters"] == {
            "INPUT": ["raster", False],
            "MODEL": ["string", True],
            "THRESHOLD": ["number", True],
            "MIN_AREA": ["number", False],
            "PROGRAM": ["string", False],
            "OUTPUT": ["vectorDestination", False],
        }
        assert about["suffix"] == "gpkg"
        assert "minimum area" in about["help"]

    def test_runs_smokegeo_and_loads_the_styled_result(self, runs, folder):
        found = runs["scene"]
        assert found["good"], found
        assert found["results"] == {"OUTPUT": str(folder / "scene.gpkg")}
        assert found["style"] == "graduatedSymbol"
        assert found["bar"] == [25, 100]
        assert "Warning: bands have no names" in found["lines"]
        assert " ".join(self.called(folder, "scene")["args"]) == (
            f"predict {folder / 'scene.tif'} --out {folder / 'scene.gpkg'} --overwrite "
            "--model m.safetensors --threshold 0.41234567 --min-area 1234567.5"
        )

    def test_leaves_out_what_is_not_given(self, runs, folder):
        assert runs["plain"]["good"]
        called = self.called(folder, "plain")
        assert called["args"][2:] == ["--out", str(folder / "plain.gpkg"), "--overwrite"]

    def test_keeps_the_libraries_of_qgis_to_itself(self, runs, folder):
        called = self.called(folder, "plain")
        assert (called["home"], called["proj"]) == (None, None)

    def test_remembers_the_program(self, runs, folder):
        assert runs["about"]["program"] == str(folder / "smokegeo")

    def test_shows_the_error_line(self, runs):
        wanted = "refused.tif has no coordinate system. Give it with --crs."
        assert runs["refused"] == {"error": wanted, "lines": ["reading"]}

    def test_notices_a_missing_result(self, runs):
        assert "without writing" in runs["silent"]["error"]

    def test_says_where_to_name_a_program_it_cannot_find(self, runs):
        assert "Advanced parameters" in runs["lost"]["error"]

    def test_ends_smokegeo_on_cancel(self, runs, folder):
        assert runs["endless"]["seconds"] < 20
        assert (folder / "endless.ended").exists()
        assert not (folder / "endless.gpkg").exists()


EXTENT = """
layer = QgsRasterLayer(sys.argv[1], "photo")
box = layer.extent()
print(json.dumps([box.xMinimum(), box.yMinimum(), box.xMaximum(), box.yMaximum()]))
"""


def test_polygons_in_pixels_lie_on_the_photograph(tmp_path):
    Image.fromarray(np.zeros((60, 80, 3), np.uint8)).save(tmp_path / "photo.png")
    shown = in_qgis(EXTENT, tmp_path / "photo.png", home=tmp_path)
    assert shown == [*(PICTURE @ (0, 60)), *(PICTURE @ (80, 0))]


@pytest.mark.slow
def test_the_picture_of_the_documents_can_be_drawn(tmp_path):
    write_scene(tmp_path / "scene.tif", bands=3)
    frame = place(some_shapes(box(5, 5, 30)), UTM_20M, UTM).frame
    write_polygons(frame, tmp_path / "smoke.gpkg", provenance={}, style_threshold=0.5)
    script = SCRIPTS / "render.py"
    command = [qgis_python(), script, "scene.tif", "smoke.gpkg", "picture.png"]
    environment = os.environ | {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert not list(tmp_path.glob("*.aux.xml"))
    with Image.open(tmp_path / "picture.png") as picture:
        width, height = picture.size
        assert width * 60 == pytest.approx(height * 80, rel=0.01)
        # Orange of a plume of 75 % over grey noise: red well above blue.
        inside = np.asarray(picture.resize((80, 60), Image.Resampling.BOX), dtype=int)[8:30, 8:30]
        assert (inside[..., 0] - inside[..., 2]).mean() > 40


def write_scene(path, bands):
    values = np.random.default_rng(0).integers(0, 99, (1, 60, 80), np.uint8)
    with rasterio.open(
        path, "w", driver="GTiff", width=80, height=60, count=bands, dtype="uint8", crs=UTM,
        transform=UTM_20M,
    ) as dst:  # fmt: skip
        dst.write(values.repeat(bands, axis=0))
