"""Rules over the source: nothing that could run a stranger's code, nothing loaded half."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted([*ROOT.glob("smokegeo/**/*.py"), *ROOT.glob("scripts/**/*.py")])
#: Modules that run code when they read data.
DANGEROUS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
#: Functions that unpickle unless told not to.
LOADERS = ("torch.load", "load_from_checkpoint", "load_url")


def faults(text: str) -> Iterator[str]:
    """Yield what a source file does that it must not."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{a.name}" for a in node.names)]
        else:
            names = []
        for name in names:
            if name.split(".")[0] in DANGEROUS:
                yield f"line {node.lineno} imports {name}"
            if name == "torch.load":
                yield f"line {node.lineno} hides torch.load under another name"
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        given = {word.arg: ast.unparse(word.value) for word in node.keywords}
        loads = called.endswith(LOADERS)
        if loads and given.get("weights_only") != "True":
            yield f"line {node.lineno}: {called} without weights_only=True"
        if given.get("weights_only", "True") not in ("True", "weights_only"):
            yield f"line {node.lineno}: weights_only={given['weights_only']}"
        if given.get("strict") == "False" and "zip" not in called:
            yield f"line {node.lineno}: {called} with strict=False"
        if called.endswith("load_state_dict") and len(node.args) > 1:
            yield f"line {node.lineno}: strict is to be written by name"
        if given.get("allow_pickle") == "True":
            yield f"line {node.lineno}: {called} with allow_pickle=True"
        if called in ("eval", "exec", "compile", "__import__"):
            yield f"line {node.lineno}: {called}"


@pytest.mark.parametrize("path", SOURCES, ids=[str(p.relative_to(ROOT)) for p in SOURCES])
def test_no_source_reads_code_as_data_or_loads_weights_in_part(path):
    assert list(faults(path.read_text("utf-8"))) == []


@pytest.mark.parametrize(
    "bad",
    [
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load('x')",
        "import torch\ntorch.load('x', weights_only=False)",
        "from torch import load",
        "m.load_state_dict(s, strict=False)",
        "m.load_state_dict(s, False)",
        "numpy.load('x', allow_pickle=True)",
        "Task.load_from_checkpoint('x')",
        "trainer.fit(x, weights_only=False)",
        "eval('1')",
    ],
)
def test_the_rules_can_be_broken(bad):
    assert list(faults(bad))


@pytest.mark.parametrize(
    "good",
    [
        "import torch\ntorch.load('x', weights_only=True)",
        "m.load_state_dict(s, strict=True)",
        "zip(a, b, strict=False)",
        "model.eval()",
    ],
)
def test_the_rules_can_be_kept(good):
    assert not list(faults(good))
