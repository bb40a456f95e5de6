"""`compose_onnx`: a classifier and its calibrator as one model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.export.map_given import fitted_of, map_of
from calibrant.export.onnx.classifier import (
    ModelOutput,
    labels_among,
    load_model,
    outputs_of,
    remove_idle,
    rename,
    scores_among,
    used_names,
)
from calibrant.export.onnx.graph import Graph, Tensor
from calibrant.export.onnx.model import IR, ML_OPSET, OPSET, facts_of, read_options, written
from calibrant.export.onnx.printer import ML, ONNX, segment_inputs
from calibrant.export.onnx.protos import add_nodes, onnx, tensor_info
from calibrant.maps import Map, VectorMap
from calibrant.plan.nodes import Node

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
    map_, fitted = map_of(calibrator), fitted_of(calibrator)
    whole = load_model(model)
    outputs = outputs_of(whole)
    found, labels = scores_among(outputs, output), labels_among(outputs)
    dtype = read_options(input, found.bits if float is None else float)
    _check_columns(map_, found)
    _check_classes(fitted, found)
    names = None if labels is None else label_table(fitted, labels)
    opset = _raise_opset(whole)
    graph = Graph(dtype, opset, prefix=free_prefix(whole.graph))
    source = _set_aside(whole.graph, found, labels)
    scores = _scores(graph, source, found, map_, fitted, input)
    plan = map_.plan(ONNX, input)
    segments = _segments(whole, graph, plan)
    p = written(map_, plan, scores, segments)
    if not isinstance(map_, VectorMap):
        pair = [1.0 - p, p] if fitted is None or fitted.positive_column else [p, 1.0 - p]
        p = graph.columns(pair)
    graph.name(p if dtype == found.dtype else p.cast(found.dtype), RESULT)
    width = map_.n_classes if isinstance(map_, VectorMap) else 2
    results = [tensor_info(RESULT, found.dtype, [None, width])]
    if labels is not None and names is not None:
        many = isinstance(map_, VectorMap) and not map_.distribution
        results.insert(0, name_labels(graph, p, None if many else names, labels.name))
    _join(whole.graph, graph, [found, labels], results)
    facts = {entry.key: entry.value for entry in whole.metadata_props}
    facts |= facts_of(map_.kind, fitted)
    onnx.helper.set_model_props(whole, facts)
    return whole


# --- what the model must be ---------------------------------------------------------------------


def _check_columns(map_: Map, found: ModelOutput) -> None:
    """The model must give as many scores as the calibrator takes."""
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


def _check_classes(fitted: Fitted | None, found: ModelOutput) -> None:
    """Where both name their classes, these must be the same."""
    if fitted is not None and found.labels is not None and found.labels != fitted.classes:
        raise InputError(
            f"the classes of the calibrator must be those of the model, but {fitted.classes!r} "
            f"came for {found.labels!r}. Fit the calibrator to the same labels."
        )


def label_table(fitted: Fitted | None, labels: ModelOutput) -> NDArray[Any]:
    """The classes, as the model's output of labels can hold them."""
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
    """The version of the model's operators, raised to ours where it is older."""
    versions = opsets_of(model)
    set_opsets(model, versions)
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
    set_opsets(model, versions)
    model.ir_version = max(model.ir_version, IR)
    return versions[""]


def opsets_of(*models: Any) -> dict[str, int]:
    """The newest version of each domain's operators in some models."""
    versions: dict[str, int] = {}
    for opset in (own for model in models for own in model.opset_import):
        domain = "" if opset.domain == "ai.onnx" else opset.domain
        # some converters name a domain twice
        versions[domain] = max(versions.get(domain, 0), opset.version)
    return versions


def set_opsets(model: Any, versions: dict[str, int]) -> None:
    """Say which operators a model has, instead of what it said before."""
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(*item) for item in versions.items())


# --- joining ------------------------------------------------------------------------------------


def free_prefix(graph: Any) -> str:
    """A beginning of names that the model does not use."""
    names, count = used_names(graph), 1
    while any(name.startswith(f"calibrant_{count}/") for name in names):
        count += 1
    return f"calibrant_{count}/"


def _set_aside(graph: Any, found: ModelOutput, labels: ModelOutput | None) -> str:
    """Free the names that the new outputs need; returns where the scores are now."""
    if any(value.name == RESULT for value in graph.input):
        raise InputError(
            f"the model must have no input called {RESULT!r}, for the output is called so. "
            "Rename the model's input."
        )
    prefix, source = free_prefix(graph), found.source
    for name in {RESULT, *([] if labels is None else [labels.name])}:
        rename(graph, name, f"{prefix}model/{name}")
        source = f"{prefix}model/{name}" if name == source else source
    return source


def _scores(
    graph: Graph, source: str, found: ModelOutput, map_: Map, fitted: Fitted | None, input: str
) -> Tensor:
    """What the calibrator takes, of what the model gives."""
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


def _segments(model: Any, graph: Graph, plan: Node) -> list[Tensor]:
    """The inputs that say which segment a row is in, where the calibrator has segments."""
    inputs = segment_inputs(plan)
    if not inputs:
        return []
    taken = [name for name in inputs if name in used_names(model.graph)]
    if taken:
        raise InputError(
            f"the model must have nothing called {taken[0]!r}: the calibrator needs an input of "
            "that name. Rename the model's."
        )
    versions = opsets_of(model)
    if versions.get(ML, ML_OPSET) < ML_OPSET and any(
        node.op_type == "LabelEncoder" for node in model.graph.node
    ):
        raise InputError(
            f"the model's operators of {ML} must be of version {ML_OPSET} or newer, but are older. "
            "Export the model again with a newer target_opset."
        )
    set_opsets(model, versions | {ML: max(versions.get(ML, ML_OPSET), ML_OPSET)})
    model.graph.input.extend(tensor_info(name, kind, [None]) for name, kind in inputs.items())
    return [graph.input(name) for name in inputs]


def name_labels(graph: Graph, p: Tensor, names: NDArray[Any] | None, output: str) -> Any:
    """The most probable class of each row, by its name.

    Without names the columns are labels that do not exclude each other: then all labels that are
    more probable than not.
    """
    if names is None:
        graph.name((p >= 0.5).cast(np.int64), output)
        return tensor_info(output, np.int64, [None, None])
    best = graph.op("ArgMax", p, attributes={"axis": 1, "keepdims": 0})
    graph.name(graph.gather(graph.constant(names, rounded=False), best), output)
    return tensor_info(output, names.dtype, [None])


def _join(model: Any, graph: Graph, replaced: list[ModelOutput | None], results: list[Any]) -> None:
    """The calibrator's nodes at the end of the model's, and its outputs instead of theirs."""
    names = {output.name for output in replaced if output is not None}
    kept = [value for value in model.output if value.name not in names]
    for value in kept:
        if value.name == RESULT:
            graph.name(graph.input(f"{graph.prefix}model/{RESULT}"), OTHER)
            value.name = OTHER
    add_nodes(graph, model)
    del model.output[:]
    model.output.extend([*results, *kept])
    remove_idle(model)
