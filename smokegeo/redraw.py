"""Polygons from a probability raster on disk, with another threshold or smoothing."""

from __future__ import annotations

from pathlib import Path

from smokegeo import __version__
from smokegeo.errors import UsageError
from smokegeo.pipeline import Outline, Prediction, draw
from smokegeo.probability import analysed_share, open_probability
from smokegeo.scene.georeference import locate
from smokegeo.scene.opening import acquired
from smokegeo.writing.outputs import Outputs
from smokegeo.writing.write import check_format, write_polygons

#: What the raster itself says of its making, kept in the polygons' metadata.
_KEPT = (
    *("model", "model_sha256", "scene", "scene_size", "bands", "bands_absent", "units"),
    *("warnings", "threshold"),
)


def redraw(prob: Path, out: Path, outline: Outline, *, overwrite: bool = False) -> str:
    """Write the polygons of a probability raster; return the result in a sentence."""
    Outputs(out, overwrite=overwrite).check(prob)
    with open_probability(prob) as raster:
        tags = raster.src.tags()
        threshold = outline.threshold
        if threshold is None:
            threshold = _threshold(tags.get("threshold"), prob)
        # What `predict --pixel-coords` wrote has no coordinates either.
        where = locate(raster.src, prob.name, pixel_coords=raster.src.crs is None)
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
    files = write_polygons(frame, out, provenance=facts, style_threshold=threshold, rasters=[prob])
    result = Prediction(frame, prob.name, tags.get("model", ""), threshold, share, files)
    return f"{result.words()} Wrote {', '.join(map(str, files))}."


def _threshold(text: str | None, prob: Path) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise UsageError(f"{prob} does not say which threshold to use. Give --threshold.") from None
