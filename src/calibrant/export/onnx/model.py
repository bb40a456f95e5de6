"""`to_onnx`: a calibrator as an ONNX model of its own, or together with its model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.errors import ParameterError
from calibrant.export.map_given import fitted_of, map_of
from calibrant.export.onnx.graph import Graph, Tensor
from calibrant.export.onnx.printer import ML, ONNX, OnnxPrinter, segment_inputs
from calibrant.export.onnx.protos import add_nodes, onnx, tensor_info
from calibrant.export.tree_parts import tree_parts_of
from calibrant.maps import Map, VectorMap
from calibrant.plan.nodes import Node
from calibrant.version import __version__

#: the oldest operators that suffice, and the format of files that goes with them
OPSET, ML_OPSET, IR = 13, 2, 7
#: float= by number of bits
TYPES: dict[int, np.dtype[Any]] = {32: np.dtype(np.float32), 64: np.dtype(np.float64)}
INPUTS = ("score", "logit")


def to_onnx(calibrator: Any, *, input: str = "score", float: int = 64) -> Any:
    """A calibrator as an ONNX model: scores in, calibrated probabilities out.

    Parameters
    ----------
    calibrator : fitted calibrator, what `load` returns, a map, or a `CalibratedClassifier`
        The last is written whole, with its models: they are converted by skl2onnx, those of
        LightGBM and XGBoost by onnxmltools. What these cannot convert, convert yourself, and use
        `compose_onnx`.
    input : {"score", "logit"}, default="score"
        What the model's input is: the score that `calibrate` takes; or, for a calibrator fitted
        to probabilities, their logits z, as nets give them: the result is that of
        `calibrate(sigmoid(z))`, without the rounding of σ(z) to 1. Rows of several classes hold
        the logits whose softmax the calibrator takes.
    float : {64, 32}, default=64
        The bits of the numbers that come, go, and are computed with. The features, the model and
        the probabilities of a `CalibratedClassifier` are float32 in either case.

    Returns
    -------
    onnx.ModelProto
        Write it with ``onnx.save``. For one score: input ``"score"`` (n,), output
        ``"probability"`` (n,), that of ``pos_label``. For several classes or labels: (n, k) and
        ``"probabilities"`` (n, k), in the order of ``classes``. A calibrator of segments has a
        second input, ``"segment"`` (n,), of integers or strings; one of several columns has
        ``"segment_1"``, ``"segment_2"`` and so on, from coarse to fine. For a
        `CalibratedClassifier`: input ``"X"`` (n, features), outputs ``"label"`` (n,) and
        ``"probabilities"`` (n, k), with ``ensemble=True`` the mean over the folds. For a
        `FeatureCalibrator` with trees: beside ``"score"`` the inputs ``"numbers"`` (n, a) and
        ``"categories"`` (n, b) of strings, as far as trees look at such columns; the metadata name
        the columns in order, and the words of each. Truth values are ``"True"``, ``"true"``,
        ``"TRUE"`` or ``"1"``, whole numbers ``"7"`` or ``"7.0"``. NaN is a missing number. Any
        other word, also a known one in another spelling, counts as a missing category.

    Notes
    -----
    Steps, and the side of every jump, are those of `calibrate` bit for bit; with ``float=32``, of
    `calibrate` at the float32 score, the result then rounded to float32. Lines of the score are the
    same bits in double; formulas differ by about 1e-15, in float32 by about 1e-7. Lines of a logit,
    or of what another map has computed, multiply its rounding by their slope: where they are
    steep, prefer double. NaN and infinite scores give NaN.

    Opset 13; trees need TreeEnsemble of ai.onnx.ml 5, and are written in double only. A map of m
    pieces is O(m) large and takes O(log m) operations a score. The metadata hold the method, the
    classes, pos_label, which scores it is for and the version of the library.

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> model = to_onnx(Piecewise.step([0.5], [0.1, 0.8]), float=32)
    >>> [value.name for value in (*model.graph.input, *model.graph.output)]
    ['score', 'probability']
    """
    dtype = read_options(input, float)
    if getattr(calibrator, "takes_rows", False) and hasattr(calibrator, "members_"):
        from calibrant.export.onnx.whole_classifier import classifier_model

        return classifier_model(calibrator, input, float)
    trees = tree_parts_of(calibrator)
    if trees is not None:
        from calibrant.export.onnx.trees import tree_model

        return tree_model(trees, input, dtype)
    map_, fitted = map_of(calibrator), fitted_of(calibrator)
    graph = Graph(dtype, OPSET)
    inputs = [tensor_info("score", dtype, ["n"])]
    output = tensor_info("probability", dtype, ["n"])
    if isinstance(map_, VectorMap):
        inputs = [tensor_info("score", dtype, ["n", map_.n_columns])]
        output = tensor_info("probabilities", dtype, ["n", map_.n_classes])
    plan = map_.plan(ONNX, input)
    opsets = {"": OPSET}
    segments = [graph.input(name) for name in segment_inputs(plan)]
    if segments:
        opsets[ML] = ML_OPSET
        inputs += [tensor_info(name, kind, ["n"]) for name, kind in segment_inputs(plan).items()]
    graph.name(written(map_, plan, graph.input("score"), segments), output.name)
    return assembled(graph, inputs, output, opsets, IR, facts_of(map_.kind, fitted))


def assembled(
    graph: Graph,
    inputs: Sequence[Any],
    output: Any,
    opsets: Mapping[str, int],
    ir_version: int,
    facts: Mapping[str, str],
) -> Any:
    """The model of a graph, with facts about it in its metadata."""
    model = onnx.helper.make_model(
        onnx.helper.make_graph([], "calibrator", inputs, [output]),
        opset_imports=[onnx.helper.make_opsetid(*opset) for opset in opsets.items()],
        ir_version=ir_version,
        producer_name="calibrant",
        producer_version=__version__,
    )
    add_nodes(graph, model.graph)
    onnx.helper.set_model_props(model, facts)
    return model


def read_options(input: str, float: int) -> np.dtype[Any]:
    """The type of a graph's numbers, once the words are known to be ours."""
    if input not in INPUTS:
        raise ParameterError(f"input must be one of {INPUTS}, but {input!r} came.")
    if float not in TYPES:
        raise ParameterError(f"float must be one of {tuple(TYPES)}, but {float!r} came.")
    return TYPES[float]


def written(map_: Map, plan: Node, scores: Tensor, segments: Sequence[Tensor]) -> Tensor:
    """The nodes of a map's plan, of scores (n,) or (n, k); NaN where a score is not finite."""
    finite, clean = guarded(scores)
    p = OnnxPrinter(clean, segments).write(plan)
    if isinstance(map_, VectorMap) and map_.distribution:  # one bad score spoils its row
        finite = (~finite).number().total() <= 0.0
    return finite.choose(p, np.nan)


def guarded(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Which scores are finite, and the scores with 0 in place of the others."""
    finite = scores.abs() <= scores.graph.largest
    return finite, finite.choose(scores, 0.0)


def facts_of(kind: str, fitted: Any) -> dict[str, str]:
    """What the metadata of a model say of its calibrator: the kind of its map, and what is known of
    the fitted value, in words, with labels as JSON."""
    facts = {"calibrant.version": __version__, "calibrant.map": kind}
    if fitted is None:
        return facts
    if fitted.score_range is not None:
        facts["calibrant.scores"] = fitted.score_range.words()
    return facts | {
        "calibrant.method": fitted.method,
        "calibrant.classes": json.dumps(fitted.classes),
        "calibrant.pos_label": json.dumps(fitted.pos_label),
    }
