"""What a classifier's ONNX model gives: its outputs, which of them are scores, and which labels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.errors import InputError, import_extra
from calibrant.export.onnx.protos import onnx

#: the names that converters give to these outputs
SCORES = ("probabilities", "probability", "output_probability")
LABELS = ("label", "output_label", "labels")
#: types of scores
FLOATS = ("float16", "float32", "float64")
#: stands for the type of an output that is no tensor
VOID = np.dtype(np.void)


@dataclass(frozen=True)
class ModelOutput:
    """An output of a model.

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
        """How many scores a row has, if that is known."""
        if self.shape is None:
            return None
        return 1 if len(self.shape) == 1 else self.shape[1]

    @property
    def bits(self) -> int:
        """The bits to compute with: those of the numbers, but not less than 32."""
        return 64 if self.dtype == np.float64 else 32


# --- reading ------------------------------------------------------------------------------------


def load_model(model: Any) -> Any:
    """A copy of a model that is given as such, as bytes, or as the path of a file."""
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
    """The files that hold weights of a model's file, where those are not in it."""
    damaged = import_extra("google.protobuf.message", extra="onnx").DecodeError
    try:
        whole = onnx.load_model(os.fspath(model), format="protobuf", load_external_data=False)
    except damaged:  # `load_model` reports it
        return []
    names = {
        entry.value
        for tensor in _tensors(whole.graph)
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return [model.parent / name for name in sorted(names)]


def _tensors(graph: Any) -> Iterator[Any]:
    """The constants of a graph and of the graphs within it."""
    for part in graphs_of(graph):
        yield from part.initializer
        for node in part.node:
            for attribute in node.attribute:
                yield from (attribute.t, *attribute.tensors)


def outputs_of(model: Any) -> list[ModelOutput]:
    """The outputs of a model, with the types and shapes that are known."""
    makers = {name: node for node in model.graph.node for name in node.output}
    known = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.output}
    return [
        _output(known.get(value.name, value), makers.get(value.name))
        for value in model.graph.output
    ]


def _output(value: Any, maker: Any) -> ModelOutput:
    if value.type.HasField("tensor_type"):
        return ModelOutput(value.name, value.name, *_tensor(value.type.tensor_type))
    if maker is None or maker.op_type != "ZipMap":
        return ModelOutput(value.name, value.name, VOID, None)
    attributes = {attribute.name: attribute for attribute in maker.attribute}
    if "classlabels_strings" in attributes:
        labels: tuple[str | int, ...] = tuple(
            label.decode() for label in attributes["classlabels_strings"].strings
        )
    else:
        labels = tuple(attributes["classlabels_int64s"].ints)
    shape = (None, len(labels))
    return ModelOutput(value.name, maker.input[0], np.dtype(np.float32), shape, labels)


def _tensor(type_: Any) -> tuple[np.dtype[Any], tuple[int | None, ...] | None]:
    undefined = type_.elem_type == onnx.TensorProto.UNDEFINED
    dtype = VOID if undefined else onnx.helper.tensor_dtype_to_np_dtype(type_.elem_type)
    if not type_.HasField("shape"):
        return dtype, None
    return dtype, tuple(d.dim_value if d.dim_value > 0 else None for d in type_.shape.dim)


def scores_among(outputs: list[ModelOutput], name: str | None) -> ModelOutput:
    """The output that holds the scores, the one of that name if it is given."""
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


def labels_among(outputs: list[ModelOutput]) -> ModelOutput | None:
    """The output that holds the labels, if there is one."""
    fit = [output for output in outputs if output.dtype.kind in "iubO"]
    if len(fit) > 1:
        fit = [output for output in fit if output.name in LABELS]
    return fit[0] if len(fit) == 1 else None


# --- changing -----------------------------------------------------------------------------------


def graphs_of(graph: Any) -> Iterator[Any]:
    """A graph and those inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in _bodies(attribute):
                yield from graphs_of(inner)


def _bodies(attribute: Any) -> list[Any]:
    """The graphs that an attribute holds."""
    return [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]


def used_names(graph: Any) -> set[str]:
    """Every name of a tensor or node."""
    names: set[str] = set()
    for part in graphs_of(graph):
        for values in (part.input, part.output, part.value_info, part.initializer, part.node):
            names.update(value.name for value in values)
        for node in part.node:
            names.update(node.input)
            names.update(node.output)
    return names


def rename(graph: Any, old: str, new: str) -> None:
    """Give a tensor another name wherever it is used; the model's own outputs keep theirs."""
    for depth, part in enumerate(graphs_of(graph)):
        inner = (part.input, part.output) if depth else ()
        for values in (part.value_info, part.initializer, *inner):
            for value in values:
                value.name = new if value.name == old else value.name
        for node in part.node:
            for names in (node.input, node.output):
                names[:] = [new if name == old else name for name in names]


def remove_idle(graph: Any) -> None:
    """Remove the nodes and constants that no output needs any more."""
    needed = {value.name for value in graph.output} | {value.name for value in graph.input}
    kept = []
    for node in reversed(graph.node):  # they are in the order of their computation
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
            inner = (g for attribute in node.attribute for g in _bodies(attribute))
            needed.update(name for g in inner for name in used_names(g))
    constants = [value for value in graph.initializer if value.name in needed]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(reversed(kept))
    graph.initializer.extend(constants)
