"""Read the texts that speak of frames: which frame a line means, and the scenario tags."""

from __future__ import annotations

import csv
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from smokegeo.datasets.layout import clean_id
from smokegeo.errors import InputError
from smokegeo.prepare.load import Sample
from smokegeo.prepare.names import read_name

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Lookup:
    """Finds the sample a line of text means: an id, a stem or a path, with or without suffix.

    `ids` are those of all samples a name may mean, `splits` (id -> split) come from their folders.
    """

    ids: Mapping[str, tuple[str, ...]]
    splits: Mapping[str, str]
    pairs: bool

    @classmethod
    def of(cls, samples: Sequence[Sample], kind: str, others: Iterable[str] = ()) -> Lookup:
        """Index the samples, and bare ids of `others`, by every name they may be called."""
        found = {other.casefold(): {other} for other in others}
        for sample in samples:
            folded = [part.casefold() for part in sample.key]
            for name in ("/".join(folded), *folded[-1:], sample.id.casefold()):
                found.setdefault(name, set()).add(sample.id)
        splits = {sample.id: sample.split for sample in samples if sample.split}
        ids = {name: tuple(sorted(ids)) for name, ids in found.items()}
        return cls(ids, splits, kind == "mss")

    def find(self, text: str, split: str | None = None) -> str | None:
        """Return the id of the one sample meant, or None.

        Of samples with the same name it is the one from the folder of the split that the text
        names, else of the given split: train/0001 and test/0001 are two frames.
        """
        for words in (text, text.split()[0] if text.split() else ""):
            said = read_name(PurePath(words), pairs=self.pairs)
            folded = [part.casefold() for part in said.key]
            for name in ("/".join(folded), *folded[-1:], clean_id(words).casefold()):
                ids = self.ids.get(name, ())
                if len(ids) > 1:
                    home = said.split or split
                    ids = tuple(i for i in ids if i in self.splits and self.splits[i] == home)
                if len(ids) == 1:
                    return ids[0]
        return None


def read_scenarios(files: Iterable[Path], lookup: Lookup) -> dict[str, tuple[str, ...]]:
    """Return id -> scenario tags from `scenarios.csv` (id,scenario;scenario); empty without."""
    paths = [path for path in files if path.name.casefold() == "scenarios.csv"]
    tags: dict[str, tuple[str, ...]] = {}
    for row in csv.reader(read_text(paths[0]).splitlines()) if paths else ():
        if len(row) < 2 or row[0].strip().casefold() in ("id", "frame", ""):
            continue
        sample_id = lookup.find(row[0].strip())
        if sample_id is None:
            log.warning("scenarios.csv tags %s, which is not there.", row[0].strip())
            continue
        tags[sample_id] = scenario_tags(";".join(row[1:]))
    return tags


def scenario_tags(text: str) -> tuple[str, ...]:
    """Split `Cloud interference; early-stage` into tags in the spelling of the layout."""
    words = (word.strip().casefold() for word in re.split(r"[;,]", text))
    return tuple(re.sub(r"[ -]+", "_", word) for word in words if word)


def read_text(path: Path) -> str:
    """Return a text file's content, with or without a byte order mark."""
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: cannot be read as text ({error}). Save it as UTF-8, or remove it."
        ) from error
