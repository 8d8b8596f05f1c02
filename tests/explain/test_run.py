"""The numbers and pictures of `smokegeo explain`, on small networks whose answer is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.image import imread

from smokegeo.bands import Band, BandSet
from smokegeo.datasets import HSS
from smokegeo.datasets.layout import Layout
from smokegeo.datasets.smoke import split_ids
from smokegeo.datasets.statistics import band_statistics
from smokegeo.errors import InputError, ModelError, UsageError
from smokegeo.evaluate import probabilities
from smokegeo.explain.look import Viewer, band_titles, mean_activation, regions
from smokegeo.explain.run import Rivals, choose_frames, explain, gather
from smokegeo.modelfile import Card, Model, load_model, save_model
from smokegeo.models.build import build_network
from smokegeo.models.config import ABLATION, MoPConfig

BANDS = 25


@pytest.fixture
def data(make_dataset) -> HSS:
    return HSS(make_dataset(count=10).root, "test")


def save(layout: Layout, name: str, architecture: str = "mop", change=None, **options) -> Model:
    """Return an untrained model, changed by hand, as if read from a file."""
    torch.manual_seed(0)
    options = {"dim": 100, **options} if architecture == "mop" else options
    network = build_network(architecture, BANDS, options)
    if change is not None:
        with torch.no_grad():
            change(network)
    statistics = band_statistics(layout, split_ids(layout, "train"), layout.bands)
    path = layout.root.parent / f"{name}.safetensors"
    card = Card(name, architecture, options, layout.bands, statistics)
    save_model(path, card, network.state_dict())
    return load_model(path)


def favour(band: int):
    """Return a change that gives nearly all weight to one band."""

    def change(network):
        network.f_router.weight.zero_()
        network.f_router.bias.zero_()
        network.f_router.bias[band] = 20.0

    return change


def equal_weights(network):
    network.f_router.weight.zero_()
    network.f_router.bias.zero_()


def test_writes_every_figure_and_the_numbers_in_it(data, tmp_path):
    model = save(data.layout, "full", change=favour(7))
    frame = data.records[0].id
    facts = explain(model, data, tmp_path / "out", [frame])
    names = [f"activation_{frame}.png", f"band_weights_{frame}.png", "correlation.png", "tsne.png"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names == facts["files"]
    for name in names:
        picture = imread(tmp_path / "out" / name)
        assert min(picture.shape[:2]) > 300, name
        assert picture.std() > 0.05, f"{name} is blank"
    weights = facts["band_weights"]
    assert weights["bands"][7] == "712 nm"
    for region in ("edge", "background"):  # random labels leave no pixel inside the smoke
        assert weights[region] is None or np.argmax(weights[region]) == 7
        assert weights[region] is None or sum(weights[region]) == pytest.approx(1, abs=1e-4)
    assert weights["smoke"] is None
    assert set(facts["separation"]) == {"with PSR"}
    assert set(facts["correlation"]) == {"common", "individual"}
    assert 0 <= facts["correlation"]["individual"]["between_bands"] <= 1


def test_models_without_a_part_stand_beside(data, tmp_path):
    model = save(data.layout, "full")
    rivals = Rivals(
        save(data.layout, "a", **ABLATION["a"]), save(data.layout, "bl", **ABLATION["bl"])
    )
    frame = data.records[0].id
    facts = explain(model, data, tmp_path / "out", [frame], rivals)
    assert set(facts["separation"]) == {"with PSR", "without PSR"}
    assert set(facts["correlation"]) == {"common", "individual", "without_split"}
    height, width = imread(tmp_path / "out" / "tsne.png").shape[:2]
    assert width > 1.5 * height  # two panels


def test_networks_are_compared_on_the_same_pixels(data):
    frames = [record.id for record in data.records]
    one = gather(Viewer(save(data.layout, "full"), data), frames)
    other = gather(Viewer(save(data.layout, "a", **ABLATION["a"]), data), frames)
    assert np.array_equal(one.labels, other.labels)
    assert np.bincount(one.labels).tolist() == [len(one.labels) // 2] * 2
    # Row a has the same individual branch from the same seed: same pixels, same features.
    np.testing.assert_allclose(one.individual, other.individual, atol=1e-6)
    lengths = np.linalg.norm(one.unit.reshape(len(one.unit), BANDS, -1), axis=2)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)


@pytest.mark.parametrize("rescale", [False, True])
def test_equal_weights_leave_the_activation_as_it_is(data, rescale):
    viewer = Viewer(save(data.layout, "equal-weights", change=equal_weights, rescale=rescale), data)
    routed, plain = mean_activation(viewer.look(data.records[0].id), viewer)
    assert plain.shape == (24, 40)
    assert plain.std() > 0
    np.testing.assert_allclose(routed, plain, atol=1e-5)


def test_one_band_with_all_weight_gives_its_own_activation(data):
    viewer = Viewer(save(data.layout, "one", change=favour(3)), data)
    look = viewer.look(data.records[0].id)
    own = look.individual.reshape(BANDS, -1, *look.individual.shape[1:])[3].mean(axis=0)
    routed = look.routed.mean(axis=0) * BANDS
    np.testing.assert_allclose(routed, own, atol=1e-5)
    np.testing.assert_allclose(look.beta[3], 1, atol=1e-5)


def test_absent_bands_are_left_out(make_dataset, tmp_path):
    root = make_dataset(count=10).root
    few = HSS(root, "test", bands=["600nm", "712nm", "808nm"])
    model = save(few.layout, "full", change=equal_weights)
    viewer = Viewer(model, few)
    assert np.flatnonzero(viewer.present).tolist() == [0, 7, 13]
    look = viewer.look(few.records[0].id)
    np.testing.assert_allclose(look.beta[[0, 7, 13]], 1 / 3, atol=1e-5)
    assert not look.beta[1].any()
    routed, plain = mean_activation(look, viewer)
    np.testing.assert_allclose(routed, plain, atol=1e-5)
    facts = explain(model, few, tmp_path / "out", [few.records[0].id])
    assert facts["correlation"]["individual"]["between_bands"] is not None
    pixels = gather(viewer, [record.id for record in few.records])
    assert pixels.individual.shape[1] == pixels.unit.shape[1] == 3 * viewer.config.band_dim
    lengths = np.linalg.norm(pixels.unit.reshape(len(pixels.unit), 3, -1), axis=2)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)


def test_a_prediction_follows_the_threshold_of_the_card(data):
    def certain(network):
        network.head.weight.zero_()
        network.head.bias.copy_(torch.tensor([0.0, 5.0]))

    viewer = Viewer(save(data.layout, "all", change=certain), data)
    assert viewer.look(data.records[0].id).predicted.all()


def test_a_model_that_sees_each_band_twice_has_a_weight_for_each_band(data, tmp_path):
    facts = explain(load_model("hss"), data, tmp_path / "out", [data.records[0].id])
    assert facts["band_weights"]["bands"] == [
        f"{band.wavelength_nm:.0f} nm" for band in data.band_set
    ]
    assert sum(facts["band_weights"]["background"]) == pytest.approx(1, abs=1e-3)


def test_a_prediction_is_what_evaluate_scores(data):
    model = load_model("hss")
    viewer = Viewer(model, data)
    for frame, _, probability, _ in probabilities(model, data):
        predicted = viewer.look(frame).predicted
        close = np.abs(probability - model.card.threshold) < 1e-3  # the folded network rounds
        assert np.array_equal(predicted[~close], (probability >= model.card.threshold)[~close])


def test_regions_are_inside_along_and_outside_the_outline():
    mask = np.zeros((30, 30), np.uint8)
    mask[10:22, 10:22] = 1
    mask[0, :] = 255
    inside, edge, outside = regions(mask)
    assert inside.sum() == 6 * 6
    assert edge[8, 15]
    assert edge[11, 15]
    assert not edge[6, 15]
    assert outside[5, 5]
    assert not (inside & edge).any()
    assert np.array_equal(inside | edge | outside, mask != 255)


def test_smoke_cut_by_the_frame_has_no_edge_there():
    inside, _, _ = regions(np.ones((8, 8), np.uint8))
    assert inside.all()


def test_groups_of_bands_are_titled_by_their_range():
    bands = BandSet(tuple(Band(f"b{i}", 400.0 + 10 * i) for i in range(4)))
    assert band_titles(bands, MoPConfig(bands=4, band_groups=2)) == [
        "400 nm to 410 nm",
        "420 nm to 430 nm",
    ]
    mixed = BandSet((Band("thermal", 10500.0), Band("pan")))
    assert band_titles(mixed, MoPConfig(bands=2)) == ["10.5 µm", "pan"]


def test_frames_are_chosen_by_number_from_much_to_little_smoke(data):
    size = {record.id: record.smoke_pixels for record in data.records}
    assert choose_frames(data, "99") == sorted(size, key=lambda frame: -size[frame])
    assert choose_frames(data, "1") == [max(size, key=lambda frame: size[frame])]


def test_frames_are_chosen_by_id(data):
    first, second = (record.id for record in data.records[:2])
    assert choose_frames(data, f"{second}, {first},{second}") == [second, first]


@pytest.mark.parametrize("wanted", ["0", "", ",", "frame_999"])
def test_frames_that_are_none_are_refused(data, wanted):
    with pytest.raises(UsageError, match="--frames"):
        choose_frames(data, wanted)


def test_a_split_with_hardly_any_smoke_is_refused(data, tmp_path, monkeypatch):
    monkeypatch.setattr("smokegeo.explain.measures.FEWEST_PIXELS", 10_000)
    with pytest.raises(InputError, match="another split"):
        explain(save(data.layout, "full"), data, tmp_path / "out", [data.records[0].id])
    assert not (tmp_path / "out").exists()


REFUSED = [
    ({"architecture": "unet"}, None, "only MoP"),
    (dict(ABLATION["a"]), None, "no F-Router"),
    ({}, "without_psr", "has prototypes"),
    ({}, "without_split", "splits the bands"),
]


@pytest.mark.parametrize(("options", "role", "words"), REFUSED)
def test_a_model_without_the_parts_is_refused(data, tmp_path: Path, options, role, words):
    odd = save(data.layout, "odd", **options)
    rivals = Rivals() if role is None else Rivals(**{role: odd})
    model = odd if role is None else save(data.layout, "full")
    with pytest.raises(ModelError, match=words):
        explain(model, data, tmp_path / "out", [data.records[0].id], rivals)
    assert not (tmp_path / "out").exists()
