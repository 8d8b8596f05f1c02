"""Polygons from a probability raster on disk, with another threshold or smoothing."""

from __future__ import annotations

import json
from pathlib import Path

from rasterio.io import DatasetReader
from rasterio.transform import Affine

from smokegeo import __version__
from smokegeo.errors import UsageError
from smokegeo.pipeline import Outline, Prediction, draw
from smokegeo.probability import analysed_share, open_probability
from smokegeo.scene.georeference import check_choice, locate
from smokegeo.scene.opening import acquired
from smokegeo.writing.outputs import Outputs
from smokegeo.writing.write import check_format, write_polygons

#: What the raster itself says of its making, kept in the polygons' metadata.
_KEPT = (
    *("model", "model_sha256", "scene", "scene_size", "bands", "bands_absent", "units"),
    *("seen_at", "warnings", "threshold", "damaged_blocks"),
)


def redraw(
    prob: Path,
    out: Path,
    outline: Outline,
    *,
    crs: str | None = None,
    pixel_coords: bool = False,
    overwrite: bool = False,
) -> str:
    """Write the polygons of a probability raster; return the result in a sentence.

    `crs` is the user's word for a raster that has none.
    """
    check_choice(crs, pixel_coords)
    Outputs(out, overwrite=overwrite).check(prob)
    with open_probability(prob) as raster:
        tags = raster.src.tags()
        threshold = outline.threshold
        if threshold is None:
            threshold = _threshold(tags.get("threshold"), prob)
        pixel_coords = pixel_coords or (crs is None and _is_in_pixels(raster.src))
        where = locate(raster.src, prob.name, crs=crs, pixel_coords=pixel_coords)
        if where.crs is None:
            check_format(out, georeferenced=False)
        frame = draw(
            raster,
            where,
            threshold,
            outline,
            model=f"{tags.get('model', '')} {tags.get('model_sha256', '')[:12]}".strip(),
            source=tags.get("scene", prob.name),
            acquired=acquired(raster.src),
        )
        share = analysed_share(raster)
    facts = {key: tags[key] for key in _KEPT if key in tags}
    facts |= {"software": f"smokegeo {__version__}", "threshold": f"{threshold:g}"}
    facts["analysed_share"] = f"{share:.6g}"
    facts["options"] = json.dumps(_options(tags.get("options")) | outline.options)
    files = write_polygons(frame, out, provenance=facts, style_threshold=threshold, rasters=[prob])
    result = Prediction(frame, prob.name, tags.get("model", ""), threshold, share, files)
    return f"{result.words()} Wrote {', '.join(map(str, files))}."


def _is_in_pixels(src: DatasetReader) -> bool:
    """Tell whether a raster says nothing of any place, as what `predict --pixel-coords` wrote."""
    gcps, _ = src.gcps
    return bool(
        src.crs is None and src.transform == Affine.identity() and not gcps and src.rpcs is None
    )


def _options(text: str | None) -> dict[str, object]:
    """Return the options that a raster was made with, if it says any."""
    try:
        options = json.loads(text or "{}")
    except (ValueError, RecursionError):  # a stranger's
        return {}
    return options if isinstance(options, dict) else {}


def _threshold(text: str | None, prob: Path) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise UsageError(f"{prob} does not say which threshold to use. Give --threshold.") from None
