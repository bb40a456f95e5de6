"""Graphs as the package onnx writes them. Only here is it imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.errors import import_extra
from calibrant.export.onnx.graph import Graph, OnnxNode


class _Onnx:
    """The package onnx, imported when something of it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_extra("onnx", extra="onnx"), name)


onnx: Any = _Onnx()


def element_type(dtype: Any) -> int:
    """ONNX's number of a NumPy type; strings are objects."""
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def tensor_info(name: str, dtype: Any, shape: Sequence[str | int | None] | None) -> Any:
    """The description of an input or output; without a shape it may have any."""
    return onnx.helper.make_tensor_value_info(name, element_type(dtype), shape)


def add_nodes(graph: Graph, proto: Any) -> None:
    """Add the nodes of a graph, bodies of loops included, and its constants to a GraphProto."""
    proto.node.extend(_node(node, graph.prefix) for node in graph.nodes)
    written = onnx.numpy_helper.from_array
    proto.initializer.extend(written(value, name) for name, value in graph.constants.items())


def _node(node: OnnxNode, prefix: str) -> Any:
    """A node, named like its first output, but never as one of another graph is."""
    name = prefix + node.outputs[0].removeprefix(prefix)
    return onnx.helper.make_node(
        node.op,
        list(node.inputs),
        list(node.outputs),
        name=name,
        domain=node.domain or None,
        **{name: _attribute(value) for name, value in node.attributes.items()},
    )


def _attribute(value: Any) -> Any:
    if isinstance(value, np.dtype):
        return element_type(value)
    if isinstance(value, np.ndarray):
        return onnx.numpy_helper.from_array(value)
    return _body(value) if isinstance(value, Graph) else value


def _body(graph: Graph) -> Any:
    """The body of a loop: a round's number, whether to go on, and a state of floats."""
    count, go_on, *state = graph.inputs
    more, *after = graph.outputs
    inputs = [tensor_info(count, np.int64, []), tensor_info(go_on, np.bool_, [])]
    inputs += [tensor_info(name, graph.dtype, None) for name in state]
    outputs = [tensor_info(more, np.bool_, [])]
    outputs += [tensor_info(name, graph.dtype, None) for name in after]
    body = onnx.helper.make_graph([], "body", inputs, outputs)
    add_nodes(graph, body)
    return body
