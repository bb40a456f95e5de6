"""`compose_onnx`: a classifier and its calibrator as one model."""

from __future__ import annotations

import importlib
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, MissingExtraError, ParameterError, import_extra
from calibrant.export.onnx.graph import Graph, Tensor, add_nodes, onnx, tensor_info
from calibrant.export.onnx.model import (
    IR,
    ML,
    ML_OPSET,
    ONNX,
    OPSET,
    add_map_to_graph,
    onnx_metadata,
    read_options,
    segment_input_types,
)
from calibrant.fitting.fitted import Fitted, map_of, to_fitted_map
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.plan.nodes import Node

#: the output with the calibrated probabilities, and what another one of that name is called then
RESULT, OTHER = "probabilities", "uncalibrated_probabilities"


def compose_onnx(
    model: Any,
    calibrator: Any,
    *,
    output: str | None = None,
    input: str = "score",
    float: int | None = None,
) -> Any:
    """A classifier's ONNX model with the calibrator at its end: features in, probabilities out.

    Parameters
    ----------
    model : onnx.ModelProto, bytes or path
        A classifier, as skl2onnx, onnxmltools or a net's exporter writes it.
    calibrator : fitted calibrator, what `load` returns, or a map
        Fitted to the scores that the model gives. Or a `CalibratedClassifier` around the same
        model, of which the calibrator is taken.
    output : str, optional
        The model's output that holds these scores: a float tensor (n,), (n, 1) or (n, k), or what
        a ZipMap makes of one. By default the only such output, or the one called
        ``"probabilities"``, ``"probability"`` or ``"output_probability"``.
    input : {"score", "logit"}, default="score"
        ``"logit"`` where the model gives logits, but the calibrator was fitted to probabilities;
        see `to_onnx`.
    float : {32, 64}, optional
        The bits of the calibrator's arithmetic; by default those of the scores. What comes out is
        of the scores' type in either case.

    Returns
    -------
    onnx.ModelProto
        With the model's inputs, the output ``"probabilities"`` (n, k) in the order of ``classes``
        instead of the model's own, and, where the model gives labels, the most probable class of
        each row (the first on ties) under the same name. Other outputs stay. A calibrator of
        segments adds the input ``"segment"`` (with several columns ``"segment_1"``, ...).

    Notes
    -----
    If the model gives two columns, the one of ``pos_label`` is the score (for a bare map, the last
    one). O(m) is added to the model for a map of m pieces. Models of opset 12 or older are
    converted to 13 first.

    Examples
    --------
    >>> from onnx import TensorProto, helper
    >>> from calibrant.maps import Logistic
    >>> info, float32 = helper.make_tensor_value_info, TensorProto.FLOAT
    >>> net = helper.make_graph(
    ...     [helper.make_node("Neg", ["x"], ["margin"])],
    ...     "net",
    ...     [info("x", float32, ["n"])],
    ...     [info("margin", float32, ["n"])],
    ... )
    >>> both = compose_onnx(helper.make_model(net), Logistic(0.0, (("x", 2.0),)))
    >>> [value.name for value in (*both.graph.input, *both.graph.output)]
    ['x', 'probabilities']
    """
    if getattr(calibrator, "takes_rows", False):  # here its model may be, too
        calibrator = calibrator.to_fitted()
    map_, fitted = map_of(calibrator), to_fitted_map(calibrator)
    whole = load_model(model)
    outputs = model_outputs(whole)
    found, labels = find_score_output(outputs, output), find_label_output(outputs)
    dtype = read_options(input, found.bits if float is None else float)
    _check_scores(map_, fitted, found)
    names = None if labels is None else onnx_labels(fitted, labels)
    opset = _raise_opset(whole)
    graph = Graph(dtype, opset, prefix=unused_name_prefix(whole.graph))
    source = _free_tensor_names(whole.graph, found, labels)
    scores = _calibrator_scores(graph, source, found, map_, fitted, input)
    plan = map_.plan(ONNX, input)
    segments = _add_segment_inputs(whole, graph, plan)
    p = add_map_to_graph(map_, plan, scores, segments)
    if not isinstance(map_, VectorMap):
        pair = [1.0 - p, p] if fitted is None or fitted.positive_column else [p, 1.0 - p]
        p = graph.columns(pair)
    graph.name(p if dtype == found.dtype else p.cast(found.dtype), RESULT)
    width = map_.n_classes if isinstance(map_, VectorMap) else 2
    results = [tensor_info(RESULT, found.dtype, [None, width])]
    if labels is not None and names is not None:
        many = isinstance(map_, VectorMap) and not map_.distribution
        results.insert(0, add_label_output(graph, p, None if many else names, labels.name))
    replaced = {own.name for own in (found, labels) if own is not None}
    kept = [value for value in whole.graph.output if value.name not in replaced]
    for value in kept:
        if value.name == RESULT:
            graph.name(graph.input(f"{graph.prefix}model/{RESULT}"), OTHER)
            value.name = OTHER
    _append_graph(whole.graph, graph, [*results, *kept])
    remove_unused_nodes(whole.graph)
    facts = {entry.key: entry.value for entry in whole.metadata_props}
    facts |= onnx_metadata(map_.kind, fitted)
    onnx.helper.set_model_props(whole, facts)
    return whole


# --- what the model must be ---------------------------------------------------------------------


def _check_scores(map_: Map, fitted: Fitted | None, found: ModelOutput) -> None:
    """Refuse a model whose scores do not fit the calibrator: another number of columns, or other
    classes."""
    wanted = (map_.n_columns,) if isinstance(map_, VectorMap) else (1, 2)
    if found.columns is None and not isinstance(map_, VectorMap):
        raise InputError(
            f"the number of columns of the model's scores must be known, but is not: {found}. "
            "Declare it where the model is exported, or set it with onnx.tools.update_model_dims."
        )
    if found.columns is not None and found.columns not in wanted:
        raise InputError(
            f"the calibrator takes {' or '.join(map(str, wanted))} column(s) of scores, but the "
            f"model gives {found.columns}: {found}. Compose it with the model whose scores it was "
            "fitted to."
        )

    if fitted is not None and found.labels is not None and found.labels != fitted.classes:
        raise InputError(
            f"the classes of the calibrator must be those of the model, but {fitted.classes!r} "
            f"came for {found.labels!r}. Fit the calibrator to the same labels."
        )


def onnx_labels(fitted: Fitted | None, labels: ModelOutput) -> NDArray[Any]:
    """The classes as an array of a type that ONNX can hold."""
    if fitted is None:
        raise InputError(
            f"the model gives labels, {labels}, which must be found anew from the calibrated "
            "probabilities, but a bare map knows no classes. Pass the fitted calibrator."
        )
    kinds = {type(label) for label in fitted.classes}
    if str in kinds and len(kinds) > 1:
        raise InputError(
            f"the classes must be all strings or all numbers in ONNX, but {fitted.classes!r} came."
        )
    if kinds == {str}:
        return np.array(fitted.classes, dtype=object)
    table = np.array(fitted.classes)
    if labels.dtype.kind in "iub":
        same = table.astype(labels.dtype)
        return same if np.array_equal(same, table) else table
    return table


def _raise_opset(model: Any) -> int:
    """Convert a model of old operators to a newer version; that version."""
    versions = opset_versions(model)
    set_opset_versions(model, versions)
    used = any(node.domain in ("", "ai.onnx") for node in model.graph.node)
    if used and versions.get("", 1) < OPSET:
        try:
            model.CopyFrom(onnx.version_converter.convert_version(model, OPSET))
        except (onnx.version_converter.ConvertError, RuntimeError) as wrong:
            raise InputError(
                f"the model's operators must be of opset {OPSET} or newer, but they are of "
                f"{versions.get('', 1)} and cannot be converted: {wrong}. Export the model again "
                "with a newer target_opset."
            ) from wrong
    versions[""] = max(versions.get("", OPSET), OPSET)
    set_opset_versions(model, versions)
    model.ir_version = max(model.ir_version, IR)
    return versions[""]


def opset_versions(*models: Any) -> dict[str, int]:
    """The version of the operators of each domain, the newest of some models."""
    versions: dict[str, int] = {}
    for opset in (own for model in models for own in model.opset_import):
        domain = "" if opset.domain == "ai.onnx" else opset.domain
        # some converters name a domain twice
        versions[domain] = max(versions.get(domain, 0), opset.version)
    return versions


def set_opset_versions(model: Any, versions: dict[str, int]) -> None:
    """Set the versions of operators that a model declares."""
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(*item) for item in versions.items())


# --- joining ------------------------------------------------------------------------------------


def unused_name_prefix(graph: Any) -> str:
    """A prefix that no name in the model begins with."""
    names, count = graph_names(graph), 1
    while any(name.startswith(f"calibrant_{count}/") for name in names):
        count += 1
    return f"calibrant_{count}/"


def _free_tensor_names(graph: Any, found: ModelOutput, labels: ModelOutput | None) -> str:
    """Rename tensors whose names the new outputs need; the name of the scores after that."""
    if any(value.name == RESULT for value in graph.input):
        raise InputError(
            f"the model must have no input called {RESULT!r}, for the output is called so. "
            "Rename the model's input."
        )
    prefix = unused_name_prefix(graph)
    taken = [RESULT] if labels is None else [RESULT, labels.name]
    names = {name: f"{prefix}model/{name}" for name in taken}
    rename_tensors(graph, names)
    return names.get(found.source, found.source)


def _calibrator_scores(
    graph: Graph, source: str, found: ModelOutput, map_: Map, fitted: Fitted | None, input: str
) -> Tensor:
    """The scores for the calibrator, taken from the model's output."""
    x = graph.input(source)
    x = x if found.dtype == graph.dtype else x.cast(graph.dtype)
    flat = found.shape is not None and len(found.shape) == 1
    if isinstance(map_, VectorMap):
        return x.expand(1) if flat else x
    if flat:
        return x
    if found.columns == 1:
        return x.squeeze(1)
    own = 1 if fitted is None or fitted.positive_column is None else fitted.positive_column
    if input == "logit":  # of two classes: the log-odds
        return x.column(own) - x.column(1 - own)
    return x.column(own)


def _add_segment_inputs(model: Any, graph: Graph, plan: Node) -> list[Tensor]:
    """Add inputs for segments to the model, if the calibrator needs them; the inputs."""
    inputs = segment_input_types(plan)
    if not inputs:
        return []
    taken = [name for name in inputs if name in graph_names(model.graph)]
    if taken:
        raise InputError(
            f"the model must have nothing called {taken[0]!r}: the calibrator needs an input of "
            "that name. Rename the model's."
        )
    versions = opset_versions(model)
    if versions.get(ML, ML_OPSET) < ML_OPSET and any(
        node.op_type == "LabelEncoder" for node in model.graph.node
    ):
        raise InputError(
            f"the model's operators of {ML} must be of version {ML_OPSET} or newer, but are older. "
            "Export the model again with a newer target_opset."
        )
    set_opset_versions(model, versions | {ML: max(versions.get(ML, ML_OPSET), ML_OPSET)})
    model.graph.input.extend(tensor_info(name, kind, [None]) for name, kind in inputs.items())
    return [graph.input(name) for name in inputs]


def add_label_output(graph: Graph, p: Tensor, names: NDArray[Any] | None, output: str) -> Any:
    """Add the output of labels to a graph: the most probable class of each row.

    Without names the columns are labels that do not exclude each other: then all labels that are
    more probable than not.
    """
    if names is None:
        graph.name((p >= 0.5).cast(np.int64), output)
        return tensor_info(output, np.int64, [None, None])
    best = graph.op("ArgMax", p, attributes={"axis": 1, "keepdims": 0})
    graph.name(graph.gather(graph.constant(names, rounded=False), best), output)
    return tensor_info(output, names.dtype, [None])


def _append_graph(model: Any, graph: Graph, outputs: Sequence[Any]) -> None:
    """Add the nodes of a graph to a model, and set the model's outputs."""
    add_nodes(graph, model)
    del model.output[:]
    model.output.extend(outputs)


# --------------------------------------------------------------------------------------------------
# A `CalibratedClassifier` as one ONNX model: its models are converted, calibrated and averaged


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
    """A `CalibratedClassifier` as one ONNX model, from features to labels and probabilities."""
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
        compose_onnx(_converted_member(member, classifier), member, float=float)
        for member in members
    ]
    whole = composed[0] if len(composed) == 1 else _mean_of_models(composed, members[0].to_fitted())
    graph = whole.graph
    labels = [value for value in graph.output if value.name != RESULT]
    if labels and labels[0].name != LABEL:  # what else has that name gets another
        away = f"{unused_name_prefix(graph)}model/{LABEL}"
        rename_tensors(graph, {LABEL: away, labels[0].name: LABEL})
        labels[0].name = LABEL
    return whole


# --- models of other libraries ------------------------------------------------------------------


def _converted_member(member: Any, classifier: Any) -> Any:
    """The model of one member of a `CalibratedClassifier`, converted to ONNX."""
    model = member.estimator
    while type(model).__name__ == "FrozenEstimator":
        model = model.estimator
    _check_model(member, model)
    columns = getattr(classifier, "n_features_in_", None)
    if columns is None:
        raise InputError(
            f"the number of features must be known, but {_model_name(model)} does not tell. "
            f"{_by_hand(classifier)}"
        )
    library = type(model).__module__.split(".", maxsplit=1)[0]
    package, function, types = CONVERTERS.get(library, SKLEARN)
    try:
        convert = getattr(importlib.import_module(package), function)
        kinds = importlib.import_module(types)
    except ImportError as missing:
        raise MissingExtraError(
            f"{_model_name(model)} is converted by the package {package!r}, which is not "
            f"installed. Install it with: pip install {package}. {_by_hand(classifier)}"
        ) from missing
    margins = member.input == "decision_function"
    last = model
    while hasattr(last, "steps"):
        last = last.steps[-1][1]
    raw = {"options": {id(last): {"raw_scores": True}}} if margins else {}
    inputs = _input_types(classifier, model, kinds)
    try:
        whole = convert(model, initial_types=inputs, target_opset=MODEL_OPSET, **raw)
    except Exception as wrong:  # each converter has errors of its own
        raise InputError(
            f"{package} cannot convert {_model_name(model)} with {columns} columns: "
            f"{_first_sentences(str(wrong))} {_by_hand(classifier)}"
        ) from wrong
    for value in whole.graph.output if margins else ():
        shape = value.type.tensor_type.shape
        if len(shape.dim) == 2:  # converters declare one column for two classes
            shape.dim[1].dim_value = len(member.classes)
    return whole


def _input_types(classifier: Any, model: Any, types: Any) -> list[tuple[str, Any]]:
    """The names and types of the model's inputs: one for all features, or one for each column of a
    frame."""
    known = getattr(classifier, "_kinds", ())
    if not _selects_by_name(model):
        text = known and set(known) == {"text"}
        kind = types.StringTensorType if text else types.FloatTensorType
        return [(FEATURES, kind([None, classifier.n_features_in_]))]
    taken = [name for name in (LABEL, RESULT) if name in classifier.feature_names_in_]
    if taken:
        raise InputError(
            f"no column of the features may be called {taken[0]!r} in ONNX, for an output is "
            "called so. Rename the column and fit again."
        )
    of_kind = {"text": types.StringTensorType, "whole": types.Int64TensorType}
    columns = zip(classifier.feature_names_in_, known, strict=True)
    return [(name, of_kind.get(kind, types.FloatTensorType)([None, 1])) for name, kind in columns]


def _selects_by_name(model: Any) -> bool:
    """Whether a step of the model takes columns by name, such as a ColumnTransformer."""
    chosen = [np.atleast_1d(columns) for *_, columns in getattr(model, "transformers_", ())]
    if any(isinstance(name, str) for columns in chosen for name in columns):
        return True
    return any(_selects_by_name(step) for _, step in getattr(model, "steps", ()))


def _check_model(member: Any, model: Any) -> None:
    """Refuse a model whose scores ONNX cannot give."""
    if member.input not in ("predict_proba", "decision_function"):
        raise InputError(
            "the model's scores must be those of predict_proba or decision_function to be written "
            f"as ONNX, but they are those of {member.input} ({_model_name(model)})."
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


def _first_sentences(text: str, most: int = 200) -> str:
    """The first sentences of an error message, shortened.

    >>> _first_sentences("No column 'age'. This may happen because of much.", most=40)
    "No column 'age'."
    >>> _first_sentences("cannot convert\\nsecond line"), _first_sentences("a long one", most=7)
    ('cannot convert.', 'a long …')
    """
    line = text.strip().partition("\n")[0].rstrip()
    if len(line) > most:
        whole, stop, _ = line[: most + 1].rpartition(". ")
        return whole + "." if stop else f"{line[:most].rstrip()} …"
    return line if line.endswith((".", "!", "?")) else line.rstrip(":;, ") + "."


def _by_hand(classifier: Any) -> str:
    """Advice to convert the model by other means."""
    whose = "model.members_[i]" if len(classifier.members_) > 1 else "model"
    return (
        "You can convert the model yourself, and put the calibrator behind it: "
        f"calibrant.compose_onnx(onnx_model, {whose})."
    )


def _model_name(model: Any) -> str:
    """The name of a model's class."""
    return str(getattr(model, "__name__", type(model).__name__))


# --- an ensemble --------------------------------------------------------------------------------


def _mean_of_models(models: Sequence[Any], fitted: Fitted) -> Any:
    """One model that gives the mean of several models' probabilities, and its most probable
    class."""
    outputs = model_outputs(models[0])
    labels = find_label_output(outputs)
    found = next(output for output in outputs if output.name == RESULT)
    whole, versions = models[0], opset_versions(*models)
    for number, model in enumerate(models, start=1):
        prefix, inputs = f"member_{number}/", {value.name for value in model.graph.input}
        inner = graph_names(model.graph) - inputs - {""}
        rename_tensors(model.graph, {name: prefix + name for name in inner})
        for node in model.graph.node:
            node.name = prefix + node.name
        if model is not whole:
            whole.graph.node.extend(model.graph.node)
            whole.graph.initializer.extend(model.graph.initializer)
    set_opset_versions(whole, versions)
    graph = Graph(found.dtype, versions[""], prefix="mean/")
    sources = [f"member_{number}/{RESULT}" for number in range(1, len(models) + 1)]
    p = graph.op("Mean", *(graph.input(source) for source in sources))
    graph.name(p, RESULT)
    results = [value for value in whole.graph.output if value.name == RESULT]
    if labels is not None:
        results.insert(0, add_label_output(graph, p, onnx_labels(fitted, labels), LABEL))
    _append_graph(whole.graph, graph, results)
    return whole


# --------------------------------------------------------------------------------------------------
# What a classifier's ONNX model gives: its outputs, which of them are scores, and which labels


#: the names that converters give to these outputs
SCORES = ("probabilities", "probability", "output_probability")
LABELS = ("label", "output_label", "labels")
#: types of scores
FLOATS = ("float16", "float32", "float64")
#: stands for the type of an output that is no tensor
VOID = np.dtype(np.void)


@dataclass(frozen=True)
class ModelOutput:
    """An output of an ONNX model: its name, type and shape.

    Parameters
    ----------
    name : str
        The name of the output.
    source : str
        The name of the tensor that holds its numbers; another one if a ZipMap makes the output.
    dtype : NumPy's type; void where it is no tensor
    shape : tuple of numbers, None where one is not known; or None where even their count is not
    labels : the classes that a ZipMap names, in the order of the columns
    """

    name: str
    source: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...] | None
    labels: tuple[str | int, ...] | None = None

    def __str__(self) -> str:
        size = "of unknown shape" if self.shape is None else str([d or "?" for d in self.shape])
        numbers = "string" if self.dtype.kind == "O" else self.dtype.name
        return f"{self.name!r} ({'not a tensor' if self.dtype == VOID else f'{numbers} {size}'})"

    @property
    def columns(self) -> int | None:
        """The number of scores in a row; None where it is not known."""
        if self.shape is None:
            return None
        return 1 if len(self.shape) == 1 else self.shape[1]

    @property
    def bits(self) -> int:
        """The number of bits to compute with, 32 or 64."""
        return 64 if self.dtype == np.float64 else 32


# --- reading ------------------------------------------------------------------------------------


def load_model(model: Any) -> Any:
    """A copy of an ONNX model, which may be given as bytes or as a path."""
    if isinstance(model, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        return copy
    damaged = import_extra("google.protobuf.message", extra="onnx").DecodeError
    try:
        if isinstance(model, bytes):
            return onnx.load_model_from_string(model)
        if isinstance(model, (str, os.PathLike)):
            # whatever its name ends in: by default .json and .txt would be read as text
            return onnx.load_model(os.fspath(model), format="protobuf")
    except damaged as wrong:
        raise InputError(
            f"model must be an ONNX model, but what came is none: {wrong}. Convert it first, for "
            "example with skl2onnx.to_onnx."
        ) from wrong
    raise InputError(
        "model must be an onnx.ModelProto, its bytes or the path of its file, but "
        f"{type(model).__name__} came. Convert it first, for example with skl2onnx.to_onnx."
    )


def weight_files(model: Path) -> list[Path]:
    """The files beside a model's file that hold its weights."""
    damaged = import_extra("google.protobuf.message", extra="onnx").DecodeError
    try:
        whole = onnx.load_model(os.fspath(model), format="protobuf", load_external_data=False)
    except damaged:  # `load_model` reports it
        return []
    names: set[str] = set()
    for part in nested_graphs(whole.graph):
        constants = list(part.initializer)
        for attribute in (own for node in part.node for own in node.attribute):
            constants += [attribute.t, *attribute.tensors]
        entries = (entry for tensor in constants for entry in tensor.external_data)
        names.update(entry.value for entry in entries if entry.key == "location")
    return [model.parent / name for name in sorted(names)]


def model_outputs(model: Any) -> list[ModelOutput]:
    """The outputs of a model, with types and shapes as far as they are known."""
    makers = {name: node for node in model.graph.node for name in node.output}
    known = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.output}
    found: list[ModelOutput] = []
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...] | None
    labels: tuple[str | int, ...] | None
    for output in model.graph.output:
        name, type_ = output.name, known.get(output.name, output).type
        dtype, shape, labels, source = VOID, None, None, name
        if type_.HasField("tensor_type"):
            tensor = type_.tensor_type
            if tensor.elem_type != onnx.TensorProto.UNDEFINED:
                dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            if tensor.HasField("shape"):
                shape = tuple(d.dim_value if d.dim_value > 0 else None for d in tensor.shape.dim)
        elif name in makers and makers[name].op_type == "ZipMap":
            given = {own.name: own for own in makers[name].attribute}
            if "classlabels_strings" in given:
                labels = tuple(label.decode() for label in given["classlabels_strings"].strings)
            else:
                labels = tuple(given["classlabels_int64s"].ints)
            dtype, shape, source = np.dtype(np.float32), (None, len(labels)), makers[name].input[0]
        found.append(ModelOutput(name, source, dtype, shape, labels))
    return found


def find_score_output(outputs: list[ModelOutput], name: str | None) -> ModelOutput:
    """The output that holds the scores: the one of this name, or the only one that can be."""
    known = ", ".join(map(str, outputs))
    floats = [output for output in outputs if output.dtype.name in FLOATS]
    fit = [output for output in floats if output.shape is None or len(output.shape) in (1, 2)]
    if name is not None:
        fit = [output for output in fit if output.name == name]
        if not fit:
            raise InputError(
                f"output must name a float tensor (n,) or (n, k) of the model, but {name!r} came. "
                f"Its outputs are: {known}."
            )
    if len(fit) > 1:
        fit = [output for output in fit if output.name in SCORES] or fit
    if len(fit) == 1:
        return fit[0]
    problem = "several" if fit else "none"
    raise InputError(
        f"one output of the model must hold its scores, a float tensor (n,) or (n, k), but "
        f"{problem} came. Its outputs are: {known}. Name one: output='...'."
    )


def find_label_output(outputs: list[ModelOutput]) -> ModelOutput | None:
    """The output that holds the labels; None if there is none."""
    fit = [output for output in outputs if output.dtype.kind in "iubO"]
    if len(fit) > 1:
        fit = [output for output in fit if output.name in LABELS]
    return fit[0] if len(fit) == 1 else None


# --- changing -----------------------------------------------------------------------------------


def nested_graphs(graph: Any) -> Iterator[Any]:
    """A graph, and all graphs inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in _inner_graphs(attribute):
                yield from nested_graphs(inner)


def _inner_graphs(attribute: Any) -> list[Any]:
    """The graphs in an attribute of a node."""
    return [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]


def graph_names(graph: Any) -> set[str]:
    """All names of tensors and nodes in a graph."""
    names: set[str] = set()
    for part in nested_graphs(graph):
        for values in (part.input, part.output, part.value_info, part.initializer, part.node):
            names.update(value.name for value in values)
        for node in part.node:
            names.update(node.input)
            names.update(node.output)
    return names


def rename_tensors(graph: Any, names: Mapping[str, str]) -> None:
    """Rename tensors of a model, except for the model's own outputs."""
    for depth, part in enumerate(nested_graphs(graph)):
        inner = (part.input, part.output) if depth else ()
        for value in itertools.chain(part.value_info, part.initializer, *inner):
            value.name = names.get(value.name, value.name)
        for node in part.node:
            for own in (node.input, node.output):
                own[:] = [names.get(name, name) for name in own]


def remove_unused_nodes(graph: Any) -> None:
    """Remove nodes and constants that no output needs."""
    needed = {value.name for value in graph.output} | {value.name for value in graph.input}
    kept = []
    for node in reversed(graph.node):  # they are in the order of their computation
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
            inner = (g for attribute in node.attribute for g in _inner_graphs(attribute))
            needed.update(name for g in inner for name in graph_names(g))
    constants = [value for value in graph.initializer if value.name in needed]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(reversed(kept))
    graph.initializer.extend(constants)
