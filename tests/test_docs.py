"""Every command and every Python example in the documents runs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from smokegeo.sensors import sensors

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "datasets/**/*.md", "configs/**/*.md")
    for path in ROOT.glob(pattern)
)
IDS = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
#: A fenced block: `sh` and `python` are run, an unmarked one is checked below.
BLOCK = re.compile(r"^```(sh|python|)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(path: Path, *languages: str) -> list[tuple[str, str]]:
    return [block for block in BLOCK.findall(path.read_text("utf-8")) if block[0] in languages]


@pytest.fixture
def readers_files(tmp_path: Path) -> Path:
    """Lay out what the documents take for granted: a reader's own frames and masks."""
    rng = np.random.default_rng(0)
    for folder in ("images", "masks"):
        (tmp_path / "my-frames" / folder).mkdir(parents=True)
    for number in range(5):
        cube = rng.integers(0, 1023, (25, 20, 30)).astype(np.uint16)
        np.save(tmp_path / "my-frames" / "images" / f"{number}.npy", cube)
        mask = (rng.random((20, 30)) < 0.3).astype(np.uint8)
        Image.fromarray(mask * 255).save(tmp_path / "my-frames" / "masks" / f"{number}.png")
    for folder in ("configs", "datasets/satellite/sample"):  # a reader stands in the checkout
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for name in ("anna", "ben", "carl"):
        mask = (rng.random((20, 30)) < 0.3).astype(np.uint8)
        Image.fromarray(mask * 255).save(tmp_path / f"{name}.png")
    Image.fromarray(rng.integers(0, 255, (48, 64, 3), np.uint8)).save(tmp_path / "photo.jpg")
    run_shell(
        "smokegeo simulate satellite --out smoke-scene --scene 64x64 --seed 3 --quiet", tmp_path
    )
    shutil.copy(tmp_path / "smoke-scene" / "scene.tif", tmp_path / "scene.tif")
    return tmp_path


def run_shell(line: str, folder: Path) -> None:
    words = shlex.split(line)
    assert words[0] == "smokegeo", f"only smokegeo commands go into sh blocks: {line}"
    if words[1] == "train" and "--iterations" not in words:
        words += ["--iterations", "2", "--batch-size", "2", "--crop", "64"]  # hours otherwise
    command = [sys.executable, "-m", "smokegeo", *words[1:]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"$ {line}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("path", DOCUMENTS, ids=IDS)
def test_commands_and_examples_run_in_order(path, readers_files):
    for language, text in blocks(path, "sh", "python"):
        if language == "python":
            done = subprocess.run(
                [sys.executable, "-c", text],
                cwd=readers_files,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            continue
        for line in text.replace("\\\n", " ").splitlines():
            if line.strip():
                # The scene the fixture made is the one the document makes.
                run_shell(
                    f"{line} --overwrite" if "--out smoke-scene" in line else line, readers_files
                )


@pytest.mark.parametrize("path", DOCUMENTS, ids=IDS)
def test_make_targets_and_constraints_named_in_documents_exist(path):
    text = path.read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)) <= targets
    for name in re.findall(r"constraints/python[\d.]+\.txt", text):
        assert (ROOT / name).is_file()


@pytest.mark.parametrize("path", DOCUMENTS, ids=IDS)
def test_links_and_pictures_exist(path):
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_the_list_of_presets_is_complete():
    text = (ROOT / "docs" / "bands.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (\d+) \|$", text, re.MULTILINE)
    assert rows == [(s.name, s.title, str(len(s.bands))) for s in sensors().values()]


def test_every_document_is_in_the_readme():
    text = (ROOT / "README.md").read_text("utf-8")
    documents = {str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")}
    assert documents - set(re.findall(r"\]\(([^)#\s]+)", text)) == set()
