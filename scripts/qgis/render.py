"""Draw a scene and its smoke polygons as QGIS shows them, with legend and scale bar.

Runs under a Python that has QGIS, usually the system's, and needs no display:

    /usr/bin/python3 scripts/qgis/render.py scene.tif smoke.gpkg docs/images/qgis.png

The polygons are drawn with the style that lies in or beside their file. `--bands` chooses the
bands shown as red, green and blue (3,2,1 unless given).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["GDAL_PAM_ENABLED"] = "NO"  # no .aux.xml with statistics beside the scene

from qgis.core import (
    QgsApplication,
    QgsContrastEnhancement,
    QgsLayerTree,
    QgsLayoutExporter,
    QgsLayoutItem,
    QgsLayoutItemLegend,
    QgsLayoutItemMap,
    QgsLayoutItemScaleBar,
    QgsLayoutPoint,
    QgsLayoutSize,
    QgsLegendStyle,
    QgsMultiBandColorRenderer,
    QgsPrintLayout,
    QgsProject,
    QgsRasterLayer,
    QgsRasterMinMaxOrigin,
    QgsVectorLayer,
)
from qgis.PyQt.QtCore import QRectF
from qgis.PyQt.QtGui import QColor, QImage

MARGIN_MM = 4
WIDTH_MM = 160
GAMMA = 1.7


def true_colour(path: Path, bands: list[int]) -> QgsRasterLayer:
    """Open a raster as red, green and blue, stretched between its 2nd and 98th percentile."""
    layer = QgsRasterLayer(str(path), path.stem)
    if not layer.isValid():
        raise SystemExit(f"{path} cannot be opened by QGIS.")
    layer.setRenderer(QgsMultiBandColorRenderer(layer.dataProvider(), *bands))
    layer.setContrastEnhancement(
        QgsContrastEnhancement.StretchToMinimumMaximum, QgsRasterMinMaxOrigin.CumulativeCut
    )
    layer.brightnessFilter().setGamma(GAMMA)  # forest is dark beside cloud
    return layer


def polygons(path: Path) -> QgsVectorLayer:
    """Open polygons with the style QGIS finds by itself."""
    layer = QgsVectorLayer(str(path), "Smoke, mean probability", "ogr")
    if not layer.isValid():
        raise SystemExit(f"{path} cannot be opened by QGIS.")
    return layer


def draw(scene: QgsRasterLayer, smoke: QgsVectorLayer, out: Path, dpi: int) -> None:
    """Lay out map, legend and scale bar, and export them as a picture."""
    project = QgsProject.instance()
    project.setCrs(scene.crs())
    project.addMapLayers([scene, smoke])
    layout = QgsPrintLayout(project)
    layout.initializeDefaults()
    extent = scene.extent()
    height_mm = WIDTH_MM * extent.height() / extent.width()
    layout.pageCollection().page(0).setPageSize(QgsLayoutSize(WIDTH_MM, height_mm))

    page = QgsLayoutItemMap(layout)
    page.attemptSetSceneRect(QRectF(0, 0, WIDTH_MM, height_mm))
    page.setLayers([smoke, scene])
    page.zoomToExtent(extent)
    layout.addLayoutItem(page)

    panel = QColor(255, 255, 255, 225)
    tree = QgsLayerTree()
    tree.addLayer(smoke)
    legend = QgsLayoutItemLegend(layout)
    legend.setAutoUpdateModel(False)
    legend.model().setRootGroup(tree)
    legend.setLinkedMap(page)
    for kind, points in ((QgsLegendStyle.Subgroup, 10), (QgsLegendStyle.SymbolLabel, 9)):
        font = legend.styleFont(kind)
        font.setPointSizeF(points)
        legend.setStyleFont(kind, font)
    legend.setBackgroundColor(panel)
    # It finds its size when first drawn, and grows from the corner it is held at.
    legend.setReferencePoint(QgsLayoutItem.LowerRight)
    right, bottom = WIDTH_MM - MARGIN_MM, height_mm - MARGIN_MM
    legend.attemptMove(QgsLayoutPoint(right, bottom))
    layout.addLayoutItem(legend)

    bar = QgsLayoutItemScaleBar(layout)
    bar.setLinkedMap(page)
    bar.applyDefaultSize()
    bar.setStyle("Single Box")
    bar.setBackgroundColor(panel)
    bar.setBackgroundEnabled(True)
    bar.setReferencePoint(QgsLayoutItem.LowerLeft)
    bar.attemptMove(QgsLayoutPoint(MARGIN_MM, bottom))
    layout.addLayoutItem(bar)

    exporter = QgsLayoutExporter(layout)
    exporter.renderPageToImage(0, dpi=dpi)
    picture = exporter.renderPageToImage(0, dpi=dpi)
    # Five bits a channel are enough for a document, and half the size as PNG.
    picture = picture.convertToFormat(QImage.Format_RGB555).convertToFormat(QImage.Format_RGB888)
    if not picture.save(str(out), quality=0):  # for PNG: as small as it gets
        raise SystemExit(f"{out} cannot be written.")


def main() -> None:
    """Read the arguments and draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("scene", type=Path)
    parser.add_argument("polygons", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--bands", default="3,2,1", help="bands for red, green, blue")
    parser.add_argument("--dpi", type=int, default=110)
    args = parser.parse_args()
    QgsApplication.setPrefixPath(os.environ.get("QGIS_PREFIX_PATH", "/usr"), True)
    application = QgsApplication([], False)
    application.initQgis()
    try:
        bands = [int(band) for band in args.bands.split(",")]
        draw(true_colour(args.scene, bands), polygons(args.polygons), args.out, args.dpi)
    finally:
        QgsProject.instance().clear()
        application.exitQgis()


if __name__ == "__main__":
    main()
