"""Fits of logits in tensors: where the tensor is, and at the optimum of the array."""

import sys

import numpy as np
import pytest

import calibrant as cal
from calibrant import tensors
from calibrant.data.score_matrix import ScoreTensor, read_matrix
from calibrant.errors import InputError

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install '.[test-torch]'")

RNG = np.random.default_rng(11)
CALIBRATORS = {
    "temperature": cal.Temperature(),
    "smoothed": cal.Temperature(label_smoothing=0.1),
    "ets": cal.EnsembleTemperature(),
    "vector": cal.StructuredScaling(structure="vector"),
    "vector, no gate": cal.StructuredScaling(structure="vector", gate=False),
    "top label": cal.TopLabelCalibrator(cal.Platt()),
}


def logits(n, k, factor=2.5):
    z = RNG.normal(size=(n, k)) * 1.5
    y = (z + 0.4 * np.arange(k) / k + RNG.gumbel(size=z.shape)).argmax(axis=1)
    return torch.tensor(factor * z).to(torch.bfloat16), y


def never_copied(monkeypatch):
    """A matrix that is asked for as a whole fails the test."""

    def on_host(values):
        whole = len(getattr(values, "shape", ())) == 2 and values.shape[0] > 300
        assert not (whole and values.shape[1] > 2), "the matrix was copied"
        return tensors.on_host(values)

    users = [name for name, module in sys.modules.items() if hasattr(module, "on_host")]
    users = [name for name in users if name.startswith("calibrant.") and name != tensors.__name__]
    assert len(users) > 3
    for module in users:
        monkeypatch.setattr(f"{module}.on_host", on_host)


@pytest.mark.parametrize("name", CALIBRATORS)
@pytest.mark.parametrize(("n", "k"), [(400, 4), (900, 60)])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_tensor_has_the_optimum_of_the_array(monkeypatch, name, n, k, weighted):
    tensor, y = logits(n, k)
    w = RNG.integers(0, 4, n).astype(float) if weighted else None
    array = tensor.double().numpy()
    c = CALIBRATORS[name]
    expected = c.fit(array, y, w).predict_proba(array[:50])
    if name != "vector":  # its gate deals rows in the order of all their scores, if they are few
        never_copied(monkeypatch)
    fitted = c.fit(tensor.requires_grad_(), torch.tensor(y), None if w is None else torch.tensor(w))
    monkeypatch.undo()
    assert np.abs(fitted.predict_proba(array[:50]) - expected).max() < 1e-6
    assert fitted.score_range_ == c.fit(array, y, w).score_range_


@pytest.mark.parametrize("as_probabilities", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_default_takes_the_same_of_a_tensor_as_of_the_array(as_probabilities, weighted):
    tensor, y = logits(900, 60)
    if as_probabilities:
        tensor = torch.softmax(tensor.float(), 1).half()
    array = tensor.float().numpy()
    w = RNG.integers(0, 4, len(y)).astype(float) if weighted else None
    there, here = (cal.AutoCalibrator().fit(scores, y, w) for scores in (tensor, array))
    assert there.chosen_ == here.chosen_ != "uncalibrated"
    assert there.look_ == here.look_
    for one, other in zip(there.leaderboard_.rows, here.leaderboard_.rows, strict=True):
        assert one.name == other.name
        assert one.log_loss == pytest.approx(other.log_loss, rel=1e-6)
    expected = here.predict_proba(array[:50])
    assert np.abs(there.predict_proba(array[:50]) - expected).max() < 1e-6


def test_probabilities_in_a_tensor_are_read_by_their_logarithm():
    z, y = logits(500, 5)
    p = torch.softmax(z.float(), 1).half()
    array = p.double().numpy()
    both = [cal.Temperature().fit(scores, y) for scores in (p, array)]
    assert both[0].temperature_ == pytest.approx(both[1].temperature_, rel=1e-6)
    assert both[0].map_.input == both[1].map_.input == "probability"


def test_blocks_are_a_small_part_of_the_tensor():
    tensor, y = logits(6000, 200)
    matrix, _ = read_matrix(tensor, y, on_device=True)
    assert isinstance(matrix, ScoreTensor)
    assert max(x.numel() for x, _, _ in matrix.blocks()) <= max(tensor.numel() // 40, 1 << 17)
    assert sum(len(x) for x, _, _ in matrix.blocks()) == 6000


def test_a_tensor_that_numpy_can_look_at_is_an_array():
    tensor, y = logits(300, 3)
    for same in (tensor.float(), tensor.double()):
        matrix, _ = read_matrix(same, y, on_device=True)
        assert not isinstance(matrix, ScoreTensor)
        assert np.shares_memory(matrix.scores, same.numpy())


@pytest.mark.parametrize(("value", "word"), [(float("nan"), "NaN"), (float("inf"), "infinity")])
def test_bad_numbers_are_said_with_row_and_column(value, word):
    tensor, y = logits(300, 4)
    tensor[17, 2] = value
    with pytest.raises(InputError, match=f"1 of 300 rows .*row 17, column 2: {word}"):
        cal.Temperature().fit(tensor, y)


def test_other_bad_input():
    tensor, y = logits(300, 4)
    with pytest.raises(InputError, match="300"):
        cal.Temperature().fit(tensor, y[:-1])
    with pytest.raises(InputError, match="first at row 0"):
        cal.Temperature(scale="logit").fit(tensor, y)
    y[0] = 9
    with pytest.raises(InputError, match="4 columns, but y holds 5 classes"):
        cal.EnsembleTemperature().fit(tensor, y)


def test_arrays_of_jax_on_the_cpu():
    jnp = pytest.importorskip("jax.numpy", reason="needs JAX: pip install '.[test-torch]'")
    tensor, y = logits(400, 5)
    array = tensor.float().numpy()
    given = jnp.asarray(array).astype(jnp.bfloat16)
    for c in (cal.Temperature(), cal.EnsembleTemperature(), cal.StructuredScaling()):
        expected = c.fit(array, y).predict_proba(array)
        assert np.abs(c.fit(given, jnp.asarray(y)).predict_proba(array) - expected).max() < 1e-6
