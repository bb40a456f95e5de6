"""Tensors of other libraries come in through the same door as arrays."""

import subprocess
import sys

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import calibrant as cal
from calibrant.boosting import AdaBoost
from calibrant.tensors import library_of, on_host

RNG = np.random.default_rng(7)
LOGITS = RNG.normal(size=(200, 3)).astype(np.float16)  # every type below but bfloat16 holds these
LABELS = RNG.integers(0, 3, 200)


class OnAnotherDevice:
    """As an array of CuPy: NumPy may not look at it, and ``get`` copies it."""

    __module__ = "cupy"

    def __init__(self, values):
        self.values = np.asarray(values)
        self.shape = self.values.shape
        self.copies = 0

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def get(self):
        self.copies += 1
        return self.values.copy()


def test_arrays_of_cupy_are_copied_once():
    scores, y = OnAnotherDevice(LOGITS), OnAnotherDevice(LABELS)
    assert library_of(scores) == "cupy"
    c = cal.VectorScaling().fit(scores, y)
    assert (scores.copies, y.copies) == (1, 1)
    assert c.map_ == cal.VectorScaling().fit(LOGITS, LABELS).map_


def test_other_things_are_left_alone():
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    for thing in ([1, 2], (1,), "abc", None, {"a": 1}, 3.0, np.zeros(2), masked):
        assert on_host(thing) is thing
        assert library_of(thing) is None


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="needs PyTorch: pip install '.[test-torch]'")


@pytest.fixture
def jnp():
    return pytest.importorskip("jax.numpy", reason="needs JAX: pip install '.[test-torch]'")


def test_a_tensor_on_the_cpu_is_not_copied(torch):
    for dtype in (torch.float64, torch.float32, torch.int64, torch.bool):
        tensor = torch.zeros(4, 3).to(dtype)
        assert np.shares_memory(on_host(tensor), tensor.numpy())
    parameter = torch.nn.Parameter(torch.zeros(4, 3))
    assert np.shares_memory(on_host(parameter), parameter.detach().numpy())


@pytest.mark.parametrize("name", ["float64", "float32"])
@pytest.mark.parametrize("gradient", [False, True])
def test_tensors_of_torch_fit_as_arrays_do(torch, name, gradient):
    scores = torch.tensor(LOGITS).to(getattr(torch, name)).requires_grad_(gradient)
    weight = torch.rand(200, requires_grad=gradient) + 0.1
    c = cal.Temperature().fit(scores, torch.tensor(LABELS))
    assert c.map_ == cal.Temperature().fit(LOGITS.astype(name), LABELS).map_
    assert np.array_equal(c.predict_proba(scores), c.predict_proba(LOGITS.astype(name)))
    one = cal.Platt().fit(scores[:, 0], torch.tensor(LABELS) == 1, weight)
    plain = weight.detach().numpy().astype(np.float64)
    assert one.map_ == cal.Platt().fit(LOGITS[:, 0], LABELS == 1, plain).map_
    assert cal.metrics.log_loss(torch.tensor(LABELS) == 1, one.calibrate(scores[:, 0])) > 0


def test_bfloat16_is_read_exactly(torch, jnp):
    rounded = torch.tensor(LOGITS).to(torch.bfloat16)
    exact = rounded.float().numpy()
    assert np.array_equal(on_host(rounded), exact)
    of_jax = jnp.asarray(exact).astype(jnp.bfloat16)
    for same in (of_jax, np.asarray(of_jax)):
        assert on_host(same).dtype == np.float32
        assert np.array_equal(on_host(same), exact)
    c = cal.VectorScaling().fit(rounded.requires_grad_(), torch.tensor(LABELS))
    assert c.map_ == cal.VectorScaling().fit(exact, LABELS).map_


def test_arrays_of_jax_fit_as_arrays_do(jnp):
    scores = LOGITS.astype(np.float32)
    c = cal.Temperature().fit(jnp.asarray(scores), jnp.asarray(LABELS))
    assert c.map_ == cal.Temperature().fit(scores, LABELS).map_


def test_nan_in_a_tensor_is_said_as_in_an_array(torch):
    scores = torch.tensor(LOGITS).to(torch.bfloat16)
    scores[17, 1] = float("nan")
    with pytest.raises(cal.errors.InputError, match="first at row 17"):
        cal.Temperature().fit(scores, LABELS)


def test_nothing_is_imported_for_arrays():
    code = (
        "import sys, numpy as np, calibrant as cal; cal.Temperature().fit(np.eye(3), [0, 1, 2]);"
        "print({'torch', 'jax', 'cupy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


class Tensor(np.ndarray):
    """What looks like a tensor of CuPy."""

    __module__ = "cupy"

    def get(self):
        return np.array(self)


def test_tensors_are_refused_where_models_of_scikit_learn_would_keep_them(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.arange(90) % 2
    tensor = X.view(Tensor)
    model = LinearDiscriminantAnalysis().fit(X, y)
    prefit = {"calibrator": "platt", "cv": "prefit"}
    fitted = cal.CalibratedClassifier(model, **prefit).fit(X, y)
    decided = cal.CalibratedClassifier(model, decision="model", **prefit).fit(X, y)
    coded = cal.CodedClassifier(LinearDiscriminantAnalysis(), calibrator="platt")
    calls = [
        *(cal.CalibratedClassifier(clone(model), "platt", cv=cv).fit for cv in (3, 0.3, "train")),
        cal.CalibratedClassifier(model, **prefit).fit,
        lambda X, _: fitted.predict_proba(X),
        lambda X, _: decided.predict(X),
        coded.fit,
        lambda X, _: clone(coded).fit(np.array(X), y).predict_proba(X),
        AdaBoost(n_estimators=2).fit,
        lambda X, _: AdaBoost(n_estimators=2).fit(np.array(X), y).predict(X),
    ]
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        for call in calls:
            with pytest.raises(cal.errors.InputError, match="but Tensor of cupy came"):
                call(tensor, y)
            call(X, y)
        own = cal.CalibratedClassifier(lambda X: X[:, 0], **prefit).fit(tensor, y)
        assert own.predict_proba(tensor).shape == (90, 2)


def test_tensors_of_torch_with_dispatch(torch, monkeypatch):
    """A model that was fitted to tensors has its classes in one."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.arange(90) % 2
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        model = LinearDiscriminantAnalysis().fit(torch.tensor(X), torch.tensor(y))
        calibrated = cal.CalibratedClassifier(model, "platt", cv="prefit")
        with pytest.raises(cal.errors.InputError, match="but Tensor of torch came"):
            calibrated.fit(torch.tensor(X), torch.tensor(y))
        one = cal.CalibratedClassifier(LinearDiscriminantAnalysis(), "platt", cv=3)
        assert one.fit(X, torch.tensor(y)).predict_proba(X).shape == (90, 2)
