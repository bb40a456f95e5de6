"""A `CalibratedClassifier` as one ONNX model: its models are converted, calibrated and averaged."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from calibrant.errors import InputError, MissingExtraError, ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.export.onnx.classifier import labels_among, outputs_of, rename, used_names
from calibrant.export.onnx.compose import (
    RESULT,
    compose_onnx,
    free_prefix,
    label_table,
    name_labels,
    opsets_of,
    set_opsets,
)
from calibrant.export.onnx.graph import Graph
from calibrant.export.onnx.protos import add_nodes

#: what the input and the labels are called, whatever the converter calls them
FEATURES, LABEL = "X", "label"
#: the operators that models are written with: all converters know them
MODEL_OPSET = 15
#: which function converts the models of a library, and where the types of its inputs are
SKLEARN = ("skl2onnx", "convert_sklearn", "skl2onnx.common.data_types")
BOOSTER_TYPES = "onnxmltools.convert.common.data_types"
CONVERTERS = {
    "lightgbm": ("onnxmltools", "convert_lightgbm", BOOSTER_TYPES),
    "xgboost": ("onnxmltools", "convert_xgboost", BOOSTER_TYPES),
}


def classifier_model(classifier: Any, input: str, float: int) -> Any:
    """Features in, labels and calibrated probabilities out; see `to_onnx`."""
    if input != "score":
        raise ParameterError(
            f"input must be 'score' for a model with its calibrator, but {input!r} came: the "
            "calibrator takes what its model gives."
        )
    if classifier.decision != "calibrated":
        raise InputError(
            "labels in ONNX are the classes of the highest calibrated probability, but decision is "
            f"{classifier.decision!r}. Set decision='calibrated' first: no new fit is needed."
        )
    members = classifier.members_
    composed = [
        compose_onnx(_converted(member, classifier), member, float=float) for member in members
    ]
    whole = composed[0] if len(composed) == 1 else _averaged(composed, members[0].to_fitted())
    _rename_label(whole.graph)
    return whole


# --- models of other libraries ------------------------------------------------------------------


def _converted(member: Any, classifier: Any) -> Any:
    """A member's model as ONNX, with the scores that its calibrator takes."""
    model = member.estimator
    while type(model).__name__ == "FrozenEstimator":
        model = model.estimator
    _check_model(member, model)
    columns = getattr(classifier, "n_features_in_", None)
    if columns is None:
        raise InputError(
            f"the number of features must be known, but {_name(model)} does not tell. "
            f"{_by_hand(classifier)}"
        )
    library = type(model).__module__.split(".", maxsplit=1)[0]
    package, function, types = CONVERTERS.get(library, SKLEARN)
    try:
        convert = getattr(importlib.import_module(package), function)
        numbers = importlib.import_module(types).FloatTensorType
    except ImportError as missing:
        raise MissingExtraError(
            f"{_name(model)} is converted by the package {package!r}, which is not installed. "
            f"Install it with: pip install {package}. {_by_hand(classifier)}"
        ) from missing
    margins = member.input == "decision_function"
    raw = {"options": {id(_last_step(model)): {"raw_scores": True}}} if margins else {}
    inputs = [(FEATURES, numbers([None, columns]))]
    try:
        whole = convert(model, initial_types=inputs, target_opset=MODEL_OPSET, **raw)
    except Exception as wrong:  # each converter has errors of its own
        raise InputError(
            f"{package} cannot convert {_name(model)} with {columns} columns of numbers: "
            f"{_whole_sentences(str(wrong))} {_by_hand(classifier)}"
        ) from wrong
    if margins:
        _declare_columns(whole, len(member.classes))
    return whole


def _last_step(model: Any) -> Any:
    while hasattr(model, "steps"):
        model = model.steps[-1][1]
    return model


def _declare_columns(model: Any, columns: int) -> None:
    """Margins have a column for each class, also where a converter declares one for two classes."""
    for value in model.graph.output:
        shape = value.type.tensor_type.shape
        if len(shape.dim) == 2:
            shape.dim[1].dim_value = columns


def _check_model(member: Any, model: Any) -> None:
    if member.input not in ("predict_proba", "decision_function"):
        raise InputError(
            "the model's scores must be those of predict_proba or decision_function to be written "
            f"as ONNX, but they are those of {member.input} ({_name(model)})."
        )
    if member.margins:
        raise InputError(
            "the margins of two classes cannot be written as ONNX for a calibrator of all classes' "
            "scores. Use one of one score, such as Platt()."
        )
    known = getattr(model, "classes_", member.classes)
    if len(known) != len(member.classes):
        raise InputError(
            f"every model must know all {len(member.classes)} classes to be written as ONNX, but "
            f"that of one fold knows {len(known)}. Use stratified folds, or ensemble=False."
        )


def _whole_sentences(text: str, most: int = 200) -> str:
    """The first line of a message, as far as its sentences are whole, and ending with a stop.

    >>> _whole_sentences("No column 'age'. This may happen because of much.", most=40)
    "No column 'age'."
    >>> _whole_sentences("cannot convert\\nsecond line"), _whole_sentences("a long one", most=7)
    ('cannot convert.', 'a long …')
    """
    line = text.strip().partition("\n")[0].rstrip()
    if len(line) > most:
        whole, stop, _ = line[: most + 1].rpartition(". ")
        return whole + "." if stop else f"{line[:most].rstrip()} …"
    return line if line.endswith((".", "!", "?")) else line.rstrip(":;, ") + "."


def _by_hand(classifier: Any) -> str:
    whose = "model.members_[i]" if len(classifier.members_) > 1 else "model"
    return (
        "You can convert the model yourself, and put the calibrator behind it: "
        f"calibrant.compose_onnx(onnx_model, {whose})."
    )


def _name(model: Any) -> str:
    return str(getattr(model, "__name__", type(model).__name__))


# --- an ensemble --------------------------------------------------------------------------------


def _averaged(models: Sequence[Any], fitted: Fitted) -> Any:
    """The mean of several models' probabilities, and the class in which it is highest."""
    outputs = outputs_of(models[0])
    labels = labels_among(outputs)
    found = next(output for output in outputs if output.name == RESULT)
    whole, versions = models[0], opsets_of(*models)
    for number, model in enumerate(models, start=1):
        _rename_inside(model.graph, f"member_{number}/")
        if model is not whole:
            whole.graph.node.extend(model.graph.node)
            whole.graph.initializer.extend(model.graph.initializer)
    set_opsets(whole, versions)
    graph = Graph(found.dtype, versions[""], prefix="mean/")
    sources = [f"member_{number}/{RESULT}" for number in range(1, len(models) + 1)]
    p = graph.op("Mean", *(graph.input(source) for source in sources))
    graph.name(p, RESULT)
    results = [value for value in whole.graph.output if value.name == RESULT]
    if labels is not None:
        results.insert(0, name_labels(graph, p, label_table(fitted, labels), LABEL))
    add_nodes(graph, whole.graph)
    del whole.graph.output[:]
    whole.graph.output.extend(results)
    return whole


def _rename_inside(graph: Any, prefix: str) -> None:
    """Give everything but the inputs a name that no other model's graph has."""
    for name in used_names(graph) - {value.name for value in graph.input} - {""}:
        rename(graph, name, prefix + name)
    for node in graph.node:
        node.name = prefix + node.name


def _rename_label(graph: Any) -> None:
    """Call the output of labels `LABEL`, and what else has that name otherwise."""
    labels = [value for value in graph.output if value.name != RESULT]
    if not labels or labels[0].name == LABEL:
        return
    if LABEL in used_names(graph):
        rename(graph, LABEL, f"{free_prefix(graph)}model/{LABEL}")
    rename(graph, labels[0].name, LABEL)
    labels[0].name = LABEL
