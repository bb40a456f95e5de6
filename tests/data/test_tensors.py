"""Tensors of other libraries come in through the same door as arrays."""

import subprocess
import sys

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

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


def test_tensors_are_refused_where_models_of_scikit_learn_cannot_compute_with_them(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.arange(90) % 2
    tensor = X.view(Tensor)
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    prefit = {"calibrator": "platt", "cv": "prefit"}
    fitted = cal.CalibratedClassifier(model, **prefit).fit(X, y)
    decided = cal.CalibratedClassifier(model, decision="model", **prefit).fit(X, y)
    coded = cal.CodedClassifier(LinearDiscriminantAnalysis(), calibrator="platt")
    calls = [
        *(cal.CalibratedClassifier(clone(model), "platt", cv=cv).fit for cv in (3, 0.3, "train")),
        cal.CalibratedClassifier(model, **prefit).fit,
        cal.CalibratedClassifier(FrozenEstimator(model), "platt").fit,
        cal.CalibratedClassifier(make_pipeline(StandardScaler(), model), "platt").fit,
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


# --- what comes back where scikit-learn's array_api_dispatch is on --------------------------------


@pytest.fixture
def dispatch(torch, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield torch


@pytest.mark.parametrize("name", ["Isotonic", "Platt", "Temperature", "BLS", "VennAbers"])
@pytest.mark.parametrize("floats", ["float64", "float32", "bfloat16"])
def test_tensors_come_back_from_calibrators(name, floats, dispatch):
    rng = np.random.default_rng(0)
    p = dispatch.tensor(rng.random(200), dtype=getattr(dispatch, floats))
    y = (rng.random(200) < p.double().numpy()).astype(int)
    c = getattr(cal, name)().fit(p, dispatch.tensor(y))
    with sklearn.config_context(array_api_dispatch=False):
        wanted = c.predict_proba(p)
    assert isinstance(wanted, np.ndarray)
    kind = dispatch.float64 if floats == "float64" else dispatch.float32
    for one in (c, c.to_fitted()):
        for found, numbers in (
            (one.predict_proba(p), wanted),
            (one.calibrate(p), wanted[:, 1]),
        ):
            assert isinstance(found, dispatch.Tensor)
            assert found.dtype == kind
            assert found.device == p.device
            assert np.abs(found.numpy() - numbers).max() < (1e-15 if kind.itemsize == 8 else 1e-7)
        assert one.predict(p).tolist() == wanted.argmax(axis=1).tolist()
    assert c.transform(p).shape == (200, 1)
    assert isinstance(c.transform(p), dispatch.Tensor)


def test_labels_that_are_text_come_back_as_numpy(dispatch):
    rng = np.random.default_rng(0)
    z, y = dispatch.tensor(rng.normal(size=(90, 3))), np.array(list("abc"))[np.arange(90) % 3]
    c = cal.Temperature().fit(z, y)
    assert isinstance(c.predict_proba(z), dispatch.Tensor)
    assert set(c.predict(z)) <= set("abc")


@pytest.mark.parametrize("floats", ["float64", "float32"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("how", ["folds", "ensemble", "fraction", "prefit", "frozen", "pipeline"])
@pytest.mark.parametrize("method", ["platt", "isotonic", "temperature"])
def test_a_model_and_its_calibrator_on_tensors(floats, k, how, method, dispatch):
    rng = np.random.default_rng(0)
    y = np.arange(240) % k
    X = (rng.normal(size=(240, 3)) + y[:, None] * [1.0, -1.0, 0.0]).astype(floats)
    w = rng.integers(1, 3, 240).astype(float) if how in ("prefit", "frozen") else None
    options = {"ensemble": {"ensemble": True}, "fraction": {"cv": 0.3, "random_state": 0}}

    def fitted(X, y):
        model = LinearDiscriminantAnalysis()
        if how in ("prefit", "frozen"):
            model.fit(X, y)
        model = FrozenEstimator(model) if how == "frozen" else model
        model = make_pipeline(StandardScaler(), model) if how == "pipeline" else model
        more = {"cv": "prefit"} if how == "prefit" else options.get(how, {})
        made = cal.CalibratedClassifier(model, method, **more).fit(X, y, w)
        decided = cal.CalibratedClassifier(model, method, decision="model", **more).fit(X, y, w)
        return made.predict_proba(X), made.predict(X), decided.predict(X)

    wanted = fitted(X, y)
    found = fitted(dispatch.tensor(X), dispatch.tensor(y))
    assert all(isinstance(one, dispatch.Tensor) for one in found)
    assert found[0].dtype == getattr(dispatch, floats)
    assert np.abs(found[0].numpy() - wanted[0]).max() < (1e-9 if floats == "float64" else 1e-3)
    if floats == "float64":
        assert found[1].tolist() == wanted[1].tolist()
        assert found[2].tolist() == wanted[2].tolist()


def test_text_labels_cannot_go_to_a_model_of_tensors(dispatch):
    X, y = dispatch.tensor(np.arange(90.0).reshape(30, 3)), np.array(["a", "b"])[np.arange(30) % 2]
    with pytest.raises(cal.errors.InputError, match="y must hold numbers where a model is fitted"):
        cal.CalibratedClassifier(LinearDiscriminantAnalysis(), "platt").fit(X, y)


def test_a_function_and_a_model_of_numpy_rows_with_dispatch(dispatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.arange(90) % 2
    rows = dispatch.tensor(X)
    own = cal.CalibratedClassifier(lambda X: X[:, 0], "platt", cv="prefit").fit(rows, y)
    assert isinstance(own.predict_proba(rows), dispatch.Tensor)
    one = cal.CalibratedClassifier(LinearDiscriminantAnalysis(), "platt", cv=3)
    assert isinstance(one.fit(X, dispatch.tensor(y)).predict_proba(X), np.ndarray)


def test_arrays_that_jax_traces_are_refused():
    jax = pytest.importorskip("jax")
    scores = jax.numpy.asarray(RNG.random(50))
    c = cal.Platt().fit(scores, LABELS[:50] > 0)
    with pytest.raises(cal.errors.InputError, match="scores must hold numbers, but an array that"):
        jax.jit(c.calibrate)(scores)
    with pytest.raises(cal.errors.InputError, match="jit, grad and vmap"):
        jax.vmap(c.calibrate)(scores)
    shape = jax.ShapeDtypeStruct(scores.shape, scores.dtype)
    inside = jax.jit(
        lambda s: jax.pure_callback(lambda x: c.calibrate(x).astype(np.float32), shape, s)
    )
    assert np.abs(np.asarray(inside(scores)) - c.calibrate(scores)).max() < 1e-6
