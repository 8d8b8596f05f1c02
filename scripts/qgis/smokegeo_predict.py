"""A QGIS Processing script: find smoke in a raster layer with the installed `smokegeo`.

In QGIS open the Processing toolbox, choose "Add Script to Toolbox..." and pick this file. It needs
nothing in QGIS's own Python: smokegeo runs as a program of its own, wherever it is installed.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

from qgis.core import (
    QgsProcessing,
    QgsProcessingAlgorithm,
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingFeedback,
    QgsProcessingLayerPostProcessorInterface,
    QgsProcessingParameterDefinition,
    QgsProcessingParameterNumber,
    QgsProcessingParameterRasterLayer,
    QgsProcessingParameterString,
    QgsProcessingParameterVectorDestination,
    QgsSettings,
    QgsVectorLayer,
)

#: Where the path of the program is remembered between runs.
PROGRAM_SETTING = "smokegeo/program"
#: QGIS points these at its own libraries; in another Python they do harm.
FOREIGN = ("PYTHONHOME", "PYTHONPATH", "GDAL_DATA", "GDAL_DRIVER_PATH", "PROJ_LIB", "PROJ_DATA")
STEP = re.compile(r"\b(\d+) of (\d+)$")
PATIENCE_S = 10.0


class DefaultStyle(QgsProcessingLayerPostProcessorInterface):
    """Give the loaded layer the style that lies in its file; Processing leaves it out."""

    def postProcessLayer(  # noqa: N802  the name is Qt's
        self, layer: Any, context: QgsProcessingContext, feedback: QgsProcessingFeedback
    ) -> None:
        """Load the style once the layer is in the project."""
        if isinstance(layer, QgsVectorLayer):
            layer.loadDefaultStyle()
            layer.triggerRepaint()


class SmokegeoPredict(QgsProcessingAlgorithm):
    """Run `smokegeo predict` on a raster layer and load the polygons."""

    INPUT, MODEL, THRESHOLD, MIN_AREA = "INPUT", "MODEL", "THRESHOLD", "MIN_AREA"
    PROGRAM, OUTPUT = "PROGRAM", "OUTPUT"
    #: Of the last run. QGIS deletes it with the run, but does not keep Python from doing so first.
    style: DefaultStyle | None = None

    def createInstance(self) -> SmokegeoPredict:  # noqa: N802
        """Return a fresh algorithm, as QGIS wants for every run."""
        return SmokegeoPredict()

    def name(self) -> str:
        """Return the id of the algorithm."""
        return "predict"

    def displayName(self) -> str:  # noqa: N802
        """Return the name in the toolbox."""
        return "Find smoke"

    def group(self) -> str:
        """Return the group in the toolbox."""
        return "smokegeo"

    def groupId(self) -> str:  # noqa: N802
        """Return the id of the group."""
        return "smokegeo"

    def shortHelpString(self) -> str:  # noqa: N802
        """Return the text beside the dialog."""
        return (
            "Finds smoke in a multispectral or hyperspectral raster and loads it as polygons, "
            "coloured by mean probability.\n\n"
            "Model and threshold may stay empty: smokegeo then takes the model that fits the "
            "bands of the raster, and the threshold of that model. Polygons smaller than the "
            "minimum area are left out.\n\n"
            "If the program is not found, give the full path of `smokegeo` under Advanced "
            "parameters; it is remembered."
        )

    def initAlgorithm(self, configuration: dict[str, Any] | None = None) -> None:  # noqa: N802
        """Declare the parameters."""
        number = QgsProcessingParameterNumber
        program = QgsProcessingParameterString(
            self.PROGRAM,
            "smokegeo program",
            defaultValue=QgsSettings().value(PROGRAM_SETTING, "smokegeo"),
        )
        advanced = QgsProcessingParameterDefinition.FlagAdvanced
        program.setFlags(program.flags() | advanced)
        for parameter in (
            QgsProcessingParameterRasterLayer(self.INPUT, "Raster layer"),
            QgsProcessingParameterString(self.MODEL, "Model (name or file)", optional=True),
            number(
                self.THRESHOLD,
                "Threshold (0 to 1)",
                type=number.Double,
                optional=True,
                minValue=0.0,
                maxValue=1.0,
            ),
            number(
                self.MIN_AREA,
                "Minimum area (m²)",
                type=number.Double,
                defaultValue=0.0,
                minValue=0.0,
            ),
            program,
            QgsProcessingParameterVectorDestination(
                self.OUTPUT, "Smoke", type=QgsProcessing.TypeVectorPolygon
            ),
        ):
            self.addParameter(parameter)

    def processAlgorithm(  # noqa: N802
        self,
        parameters: dict[str, Any],
        context: QgsProcessingContext,
        feedback: QgsProcessingFeedback,
    ) -> dict[str, Any]:
        """Run smokegeo, pass on what it says, and return the file it wrote."""
        layer = self.parameterAsRasterLayer(parameters, self.INPUT, context)
        source = layer.source() if layer is not None else ""
        if layer is None or not Path(source).exists():
            raise QgsProcessingException(
                f"{source or 'The layer'} is not a file on this computer. Save it as GeoTIFF first."
            )
        program = self._program(self.parameterAsString(parameters, self.PROGRAM, context))
        out = self.parameterAsOutputLayer(parameters, self.OUTPUT, context)
        # The dialog has asked already whether an existing file may go.
        command = [program, "predict", source, "--out", out, "--overwrite"]
        if model := self.parameterAsString(parameters, self.MODEL, context).strip():
            command += ["--model", model]
        if parameters.get(self.THRESHOLD) is not None:
            threshold = self.parameterAsDouble(parameters, self.THRESHOLD, context)
            command += ["--threshold", repr(threshold)]
        min_area_m2 = self.parameterAsDouble(parameters, self.MIN_AREA, context)
        if min_area_m2 > 0:
            command += ["--min-area", repr(min_area_m2)]
        feedback.pushCommandInfo(subprocess.list2cmdline(command))
        run(command, feedback)
        if feedback.isCanceled():
            return {}
        if not Path(out).exists():
            raise QgsProcessingException(f"smokegeo ended without writing {out}.")
        if context.willLoadLayerOnCompletion(out):
            SmokegeoPredict.style = DefaultStyle()
            details = context.layerToLoadOnCompletionDetails(out)
            details.setPostProcessor(SmokegeoPredict.style)
        return {self.OUTPUT: out}

    def _program(self, wanted: str) -> str:
        """Find the program, and remember a path that worked."""
        found = shutil.which(wanted.strip() or "smokegeo")
        if found is None:
            raise QgsProcessingException(
                f'The program "{wanted}" was not found. Install smokegeo, or give the full path '
                "of its program under Advanced parameters."
            )
        if Path(wanted).is_absolute():
            QgsSettings().setValue(PROGRAM_SETTING, wanted)
        return found


def run(command: list[str], feedback: QgsProcessingFeedback) -> None:
    """Run a command; its lines go to the log, its "n of m" to the bar, Cancel ends it."""
    environment = {key: value for key, value in os.environ.items() if key not in FOREIGN}
    environment |= {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        encoding="utf-8",
        errors="replace",
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_listen, args=(process.stdout, lines), daemon=True).start()
    try:
        last = _pass_on(lines, feedback)
        if feedback.isCanceled():
            return
        code = process.wait()
    finally:
        _end(process)
    if code != 0:
        raise QgsProcessingException(last or f"smokegeo ended with exit code {code}.")


def _listen(stream: Any, lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line.rstrip())
    lines.put(None)


def _pass_on(lines: queue.Queue[str | None], feedback: QgsProcessingFeedback) -> str:
    """Show lines until the program closes its output or the user cancels.

    Return its error, or else the last thing it said.
    """
    last = reason = ""
    while not feedback.isCanceled():
        try:
            line = lines.get(timeout=0.1)
        except queue.Empty:
            continue
        if line is None:
            break
        if not line:
            continue
        last = line
        if line.startswith("Error: "):
            reason = line.removeprefix("Error: ")
            continue  # shown once, as the reason of the failure
        if line.startswith("Warning: "):
            feedback.pushWarning(line)
        else:
            feedback.pushInfo(line)
        if (step := STEP.search(line)) and int(step[2]) > 0:
            feedback.setProgress(100 * int(step[1]) / int(step[2]))
    return reason or last


def _end(process: subprocess.Popen[str]) -> None:
    """End a program that still runs: first kindly, so that it can tidy up."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
