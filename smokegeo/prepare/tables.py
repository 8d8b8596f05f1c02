"""Find samples in parquet tables, as Hugging Face publishes datasets."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from smokegeo.datasets.layout import clean_id
from smokegeo.errors import InputError, deepest_cause
from smokegeo.prepare import forms
from smokegeo.prepare.faults import SampleFault
from smokegeo.prepare.find import Found
from smokegeo.prepare.lists import scenario_tags
from smokegeo.prepare.load import Sample
from smokegeo.prepare.names import RGB_WORDS, SPLIT_NAMES, THERMAL_WORDS, natural, scene_of
from smokegeo.prepare.native import Native

_IMAGE_COLUMNS = ("image", "img", "cube", "hsi", "data", "hyperspectral", "pixel_values")
_MASK_COLUMN = re.compile(r"(?:masks?|labels?|gt|annotations?|annotator|segmentation)[_ -]?\d*$")
_ID_COLUMNS = ("id", "name", "image_id", "file_name", "filename")
_SCENE_COLUMNS = ("scene", "scene_id", "video", "sequence")
_SCENARIO_COLUMNS = ("scenario", "scenarios")

#: First bytes of an encoded file -> the suffix its reader goes by.
_MAGIC = (
    (b"\x89PNG", ".png"),
    (b"\xff\xd8\xff", ".jpg"),
    (b"BM", ".bmp"),
    (b"II", ".tif"),
    (b"MM", ".tif"),
    (b"\x93NUMPY", ".npy"),
    (b"PK\x03\x04", ".npz"),
    (b"\x89HDF", ".h5"),
    (b"MATLAB", ".mat"),
)


@dataclass(frozen=True)
class _Columns:
    image: str
    thermal: str | None
    masks: tuple[str, ...]


@dataclass
class _Cursor:
    """Reads single rows of a table; one after the other, each page is decoded once."""

    path: Path
    row: int = -1
    rows: Iterator[Any] | None = None
    cells: Any = None

    def read(self, row: int) -> dict[str, Any]:
        """Return one row as column -> arrow scalar."""
        if self.rows is None or row < self.row:
            parquet = _pyarrow_parquet()
            self.rows, self.row = parquet.ParquetFile(self.path).iter_batches(batch_size=1), -1
        while self.row < row:
            self.cells = next(self.rows)
            self.row += 1
        return {name: self.cells.column(name)[0] for name in self.cells.schema.names}


@dataclass(frozen=True)
class RowSource:
    """A sample in one row of a parquet table."""

    cursor: _Cursor
    row: int
    columns: _Columns

    def read_image(self) -> Native:
        """Return the image, decoded from its bytes or nested lists."""
        cells = self._cells()
        if self.columns.thermal is None:
            image = _decode(cells[self.columns.image], mask=False)
            return replace(image, form=f"parquet of {image.form}")
        with tempfile.TemporaryDirectory() as folder:
            rgb = _to_file(cells[self.columns.image], Path(folder) / "rgb")
            thermal = _to_file(cells[self.columns.thermal], Path(folder) / "thermal")
            return forms.read_pair(rgb, thermal)

    def read_masks(self) -> list[Native]:
        """Return the masks of all mask columns that are filled."""
        cells = self._cells()
        return [_decode(cells[c], mask=True) for c in self.columns.masks if cells[c].is_valid]

    def _cells(self) -> dict[str, Any]:
        try:
            return self.cursor.read(self.row)
        except Exception as error:  # arrow raises many kinds on damaged pages
            detail = f"{self.cursor.path.name}: {deepest_cause(error)}"
            raise SampleFault("unreadable", detail) from error


def find_rows(files: Sequence[Path], kind: str) -> Found:
    """Make one sample of every row of the tables, in the order of shards and rows."""
    parquet = _pyarrow_parquet()
    samples: list[Sample] = []
    faults: dict[str, SampleFault] = {}
    seen: set[str] = set()
    for path in sorted(files, key=lambda p: natural(p.as_posix())):
        try:
            table = parquet.ParquetFile(path)
            columns = _columns(path, table.schema_arrow, kind)
            small = list(_small_columns(table))
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path}: cannot be read as parquet ({deepest_cause(error)}). Fetch it again."
            ) from error
        cursor = _Cursor(path)
        shard = re.sub(r"-of-\d+$", "", path.stem)
        for row, cells in enumerate(small):
            name = _row_name(cells, columns.image) or f"{shard}-{row:05d}"
            own_id = clean_id(name)
            if own_id in seen:
                faults[own_id] = SampleFault("duplicate id", f"row {row} of {path.name}")
                continue
            seen.add(own_id)
            scene = _first(cells, _SCENE_COLUMNS) or scene_of((name,))
            samples.append(
                Sample(
                    own_id,
                    (name,),
                    RowSource(cursor, row, columns),
                    clean_id(scene) if scene else "",
                    _split(cells, path),
                    scenario_tags(_first(cells, _SCENARIO_COLUMNS)),
                )
            )
    kept = tuple(sample for sample in samples if sample.id not in faults)
    return Found(kept, faults)


def _pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            "parquet files need pyarrow. Install it with `pip install smokegeo[parquet]`."
        ) from error
    return pyarrow.parquet


def _columns(path: Path, schema: Any, kind: str) -> _Columns:
    import pyarrow as pa

    # A plain number called "label" is a class of the whole frame, not a mask.
    folded = {
        column.name.casefold(): column.name
        for column in schema
        if not (pa.types.is_primitive(column.type) or pa.types.is_string(column.type))
    }
    masks = tuple(folded[name] for name in sorted(folded, key=natural) if _MASK_COLUMN.match(name))
    if kind == "mss":
        rgb = [folded[word] for word in sorted(RGB_WORDS) if word in folded]
        heat = [folded[word] for word in sorted(THERMAL_WORDS) if word in folded]
        colour = rgb or [folded[word] for word in _IMAGE_COLUMNS if word in folded]
        if colour and heat:
            return _Columns(colour[0], heat[0], masks)
    for word in _IMAGE_COLUMNS:
        if word in folded:
            return _Columns(folded[word], None, masks)
    raise InputError(
        f"{path} has no image column; it has {', '.join(schema.names)}. "
        f"Call it one of {', '.join(_IMAGE_COLUMNS)}."
    )


def _small_columns(table: Any) -> Iterator[dict[str, Any]]:
    """Yield the text columns and the files' own paths, row by row, without the pixels."""
    import pyarrow as pa

    wanted = []
    for column in table.schema_arrow:
        if pa.types.is_struct(column.type) and column.type.get_field_index("path") >= 0:
            wanted.append(f"{column.name}.path")
        elif pa.types.is_string(column.type) or pa.types.is_integer(column.type):
            wanted.append(column.name)
    if not wanted:
        yield from ({} for _ in range(table.metadata.num_rows))
        return
    for batch in table.iter_batches(columns=wanted):
        yield from batch.to_pylist()


def _row_name(cells: dict[str, Any], image: str) -> str:
    inner = cells.get(image)
    path = inner.get("path") if isinstance(inner, dict) else None
    name = _first(cells, _ID_COLUMNS) or (path or "")
    return re.sub(r"\.[A-Za-z0-9]{2,4}$", "", re.split(r"[/\\]", name)[-1])


def _split(cells: dict[str, Any], path: Path) -> str | None:
    words = [_first(cells, ("split",)), path.parent.name, re.split(r"[-_.]", path.stem)[0]]
    return next((SPLIT_NAMES[w.casefold()] for w in words if w.casefold() in SPLIT_NAMES), None)


def _first(cells: dict[str, Any], names: Sequence[str]) -> str:
    for name, value in cells.items():
        if name.casefold() in names and value is not None:
            return str(value)
    return ""


def _decode(cell: Any, *, mask: bool) -> Native:
    with tempfile.TemporaryDirectory() as folder:
        path = _to_file(cell, Path(folder) / "cell")
        return forms.read_mask(path) if mask else forms.read_image(path)


def _to_file(cell: Any, path: Path) -> Path:
    """Put a cell into a file of its own form, so that it is read by the same rules as any file."""
    import pyarrow as pa

    if not cell.is_valid:
        raise SampleFault("unreadable", "an empty cell")
    if pa.types.is_struct(cell.type):
        cell = cell["bytes"]
        if not cell.is_valid:
            raise SampleFault("unreadable", "only a path, and the file is not in the table")
    if pa.types.is_binary(cell.type) or pa.types.is_large_binary(cell.type):
        content: bytes = cell.as_py()
        suffix = next((s for magic, s in _MAGIC if content.startswith(magic)), None)
        if suffix is None:
            raise SampleFault("unreadable", f"bytes that begin with {content[:8]!r}")
        target = path.with_suffix(suffix)
        target.write_bytes(content)
        return target
    values = cell.type
    while hasattr(values, "value_type"):
        values = values.value_type
    target = path.with_suffix(".npy")
    try:
        np.save(target, np.array(cell.as_py(), dtype=values.to_pandas_dtype()), allow_pickle=False)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise SampleFault("unreadable", f"lists that are no array: {error}") from error
    return target
