"""A graph under construction: named tensors that add and compare like arrays.

Nodes are plain records; only the end of this page knows the package onnx, which writes them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import import_extra
from calibrant.losses import LARGEST, SMALLEST, logit

Array = NDArray[Any]
#: what stands in a formula: a tensor, a number, or an array of constants
Operand: TypeAlias = Union["Tensor", float, np.generic, Array]


class OnnxNode(NamedTuple):
    """One operation of a graph, with the names of its inputs and outputs."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    domain: str = ""


def _operator_of_two(op: str) -> Callable[[Tensor, Operand], Tensor]:
    """A method for an ONNX operation whose second operand stands on the right."""
    return lambda tensor, other: tensor.graph.op(op, tensor, other)


def _swapped_operator(op: str) -> Callable[[Tensor, Operand], Tensor]:
    """A method for an ONNX operation whose second operand stands on the left."""
    return lambda tensor, other: tensor.graph.op(op, other, tensor)


def _operator_of_one(op: str) -> Callable[[Tensor], Tensor]:
    """A method for an ONNX operation of one operand."""
    return lambda tensor: tensor.graph.op(op, tensor)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A named result in a graph. Arithmetic with it adds nodes to the graph."""

    #: NumPy's arrays leave arithmetic with a tensor to the tensor
    __array_ufunc__: ClassVar[None] = None

    graph: Graph
    name: str

    __add__, __radd__ = _operator_of_two("Add"), _swapped_operator("Add")
    __sub__, __rsub__ = _operator_of_two("Sub"), _swapped_operator("Sub")
    __mul__, __rmul__ = _operator_of_two("Mul"), _swapped_operator("Mul")
    __truediv__, __rtruediv__ = _operator_of_two("Div"), _swapped_operator("Div")
    __matmul__ = _operator_of_two("MatMul")
    __ge__, __gt__ = _operator_of_two("GreaterOrEqual"), _operator_of_two("Greater")
    __le__, __lt__ = _operator_of_two("LessOrEqual"), _operator_of_two("Less")
    __and__, __or__ = _operator_of_two("And"), _operator_of_two("Or")
    __neg__, __invert__ = _operator_of_one("Neg"), _operator_of_one("Not")

    abs, sqrt, exp, log = (_operator_of_one(op) for op in ("Abs", "Sqrt", "Exp", "Log"))
    #: the larger, and the smaller of the two
    at_least, at_most = _operator_of_two("Max"), _operator_of_two("Min")

    def within(self, least: Operand, most: Operand) -> Tensor:
        """The tensor clipped to an interval."""
        return self.at_least(least).at_most(most)

    def choose(self, then: Operand, otherwise: Operand) -> Tensor:
        """``then`` where this condition holds, else ``otherwise``."""
        return self.graph.op("Where", self, then, otherwise)

    def number(self) -> Tensor:
        """The condition as a number: 1 where it holds, else 0."""
        return self.cast(self.graph.dtype)

    def cast(self, dtype: Any) -> Tensor:
        """The tensor as numbers of another type."""
        return self.graph.op("Cast", self, attributes={"to": np.dtype(dtype)})

    def like(self, value: float | np.generic | Array) -> Tensor:
        """A value, repeated in the shape of this tensor."""
        return self.graph.op("Expand", value, self.graph.op("Shape", self))

    def column(self, j: int) -> Tensor:
        """Column j of (n, k), shape (n,)."""
        return self.graph.gather(self, np.array(j), axis=1)

    def total(self) -> Tensor:
        """The sums of rows (n, k), shape (n, 1)."""
        return self.graph.op("ReduceSum", self, np.array([1]), attributes={"keepdims": 1})

    def greatest(self) -> Tensor:
        """The largest of each row of (n, k), shape (n, 1)."""
        if self.graph.opset >= 18:  # from here on axes are an input
            return self.graph.op("ReduceMax", self, np.array([1]), attributes={"keepdims": 1})
        return self.graph.op("ReduceMax", self, attributes={"axes": [1], "keepdims": 1})

    def expand(self, axis: int) -> Tensor:
        """The tensor with one more axis, of length one."""
        return self.graph.op("Unsqueeze", self, np.array([axis]))

    def squeeze(self, axis: int) -> Tensor:
        """The tensor without an axis of length one."""
        return self.graph.op("Squeeze", self, np.array([axis]))


@dataclass(eq=False, repr=False)
class Graph:
    """A graph under construction: its operations in order, and its constants.

    Parameters
    ----------
    dtype : type of all floats, float32 or float64
    opset : version of ONNX's operators
    prefix : str
        Begins every name, so that none is met in the graph that this one may join.
    parent : Graph, optional
        The graph around the body of a loop, whose tensors the body sees.

    Notes
    -----
    The same operation of the same tensors is added once, however often it is asked for. A node is
    added to the innermost graph of its operands, so what does not change in a loop stays outside.

    Examples
    --------
    >>> graph = Graph(np.dtype(np.float64), 13)
    >>> x = graph.input("x")
    >>> (1.0 - x).name == (1.0 - x).name, [node.op for node in graph.nodes]
    (True, ['Sub'])
    """

    dtype: np.dtype[Any]
    opset: int
    prefix: str = ""
    parent: Graph | None = None
    nodes: list[OnnxNode] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    known: dict[Any, tuple[str, ...]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """How many graphs this one is nested in."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def largest(self) -> float:
        """The largest finite number of the graph's type."""
        return float(np.finfo(self.dtype).max)

    def input(self, name: str) -> Tensor:
        """A tensor that comes from outside, under its own name."""
        return Tensor(self, name)

    def constant(self, value: float | np.generic | Array, rounded: bool = True) -> Tensor:
        """A constant of the graph. Floats get the graph's type where ``rounded``."""
        if self.parent is not None:
            return self.parent.constant(value, rounded)
        array = np.asarray(value)
        if rounded and array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                array = array.astype(self.dtype)
        content = tuple(array.tolist()) if array.dtype.kind == "O" else array.tobytes()
        key = (array.dtype.str, array.shape, content)
        if key not in self.known:
            name = self._new_name("constant")
            self.known[key] = (name,)
            self.constants[name] = array
        return Tensor(self, self.known[key][0])

    def op(
        self,
        op: str,
        *operands: Operand,
        attributes: Mapping[str, Any] | None = None,
        domain: str = "",
    ) -> Tensor:
        """The result of an operation with one output."""
        return self.ops(op, operands, 1, attributes, domain)[0]

    def ops(
        self,
        op: str,
        operands: Sequence[Operand],
        count: int,
        attributes: Mapping[str, Any] | None = None,
        domain: str = "",
    ) -> list[Tensor]:
        """The results of an operation with several outputs."""
        tensors = [x if isinstance(x, Tensor) else self.constant(x) for x in operands]
        home = max((t.graph for t in tensors), key=lambda graph: graph.depth)
        names = tuple(t.name for t in tensors)
        key = (op, domain, names, count, repr(sorted((attributes or {}).items())))
        found = home._known_result(key)
        if found is None:
            found = tuple(self._new_name(op) for _ in range(count))
            home.nodes.append(OnnxNode(op, names, found, attributes or {}, domain))
            home.known[key] = found
        return [Tensor(home, name) for name in found]

    def _known_result(self, key: Any) -> tuple[str, ...] | None:
        """The names of an operation's results, if this graph or one around it has it already; else
        None."""
        found = self.known.get(key)
        return (
            self.parent._known_result(key) if found is None and self.parent is not None else found
        )

    def _new_name(self, word: str) -> str:
        """A name that the graph does not have yet, such as ``add_2``."""
        if self.parent is not None:
            return self.parent._new_name(word)
        word = word.lower()
        self.counts[word] = self.counts.get(word, 0) + 1
        return f"{self.prefix}{word}_{self.counts[word]}"

    # --- operations that are no operators of Python ---------------------------------------------

    def gather(self, table: Operand, index: Operand, axis: int = 0) -> Tensor:
        """The entries of a table along an axis."""
        return self.op("Gather", table, index, attributes={"axis": axis})

    def columns(self, parts: Sequence[Tensor], beside: Sequence[Tensor] = ()) -> Tensor:
        """Columns put side by side as a matrix, behind the columns of other matrices."""
        stacked = [*beside, *(part.expand(1) for part in parts)]
        if len(stacked) == 1:
            return stacked[0]
        return self.op("Concat", *stacked, attributes={"axis": 1})

    def loop(
        self,
        most: int,
        start: Sequence[Tensor],
        body: Callable[[Graph, Tensor, list[Tensor]], tuple[Tensor | None, Sequence[Tensor]]],
    ) -> list[Tensor]:
        """Add a loop of at most ``most`` rounds; its state at the end.

        The body is given its own graph, the number of the round and the state; it returns whether
        to go on (None: always) and the new state.
        """
        inner = Graph(self.dtype, self.opset, parent=self)
        count, go_on = inner._new_name("round"), inner._new_name("go_on")
        names = [inner._new_name("state") for _ in start]
        state = [Tensor(inner, name) for name in names]
        more, after = body(inner, Tensor(inner, count), state)
        inner.inputs = [count, go_on, *names]
        results = (Tensor(inner, go_on) if more is None else more, *after)
        # a body must give tensors of its own, not those of the graphs around it
        inner.outputs = [inner.name(t, inner._new_name("result")).name for t in results]
        operands: list[Operand] = [np.array(most), np.array(True), *start]
        return self.ops("Loop", operands, len(start), {"body": inner})

    def name(self, x: Tensor, name: str) -> Tensor:
        """Give a tensor a name of its own in this graph."""
        self.nodes.append(OnnxNode("Identity", (x.name,), (name,), {}))
        return Tensor(self, name)


# --- The few functions that maps are made of, as graphs that keep every digit they can ------------
# ONNX's own Sigmoid and Softmax are not used: runtimes compute them to the few digits that a label
# needs, and a probability of 1e-12 comes out as 1e-8.


#: the logits of 0 and 1
LOWEST, HIGHEST = (float(end) for end in logit(np.array([0.0, 1.0])))
#: the power of two that makes subnormal numbers normal ones
RAISED = 64


def sigmoid_of(f: Tensor) -> Tensor:
    """σ(f) = 1 / (1 + exp(−f)), with all digits of tiny ones; where exp is infinite it is 0."""
    return 1.0 / (1.0 + (-f).exp())


def softplus_of(f: Tensor) -> Tensor:
    """ln(1 + exp(f)), without overflow."""
    tail = (-f.abs()).exp()
    return f.at_least(0.0) + (1.0 + tail).log()


def _ln(q: Tensor) -> Tensor:
    """The logarithm of positive numbers, also of subnormal ones, for which some runtimes have
    none."""
    small = q < float(np.finfo(q.graph.dtype).tiny)
    log = small.choose(q * 2.0**RAISED, q).log()
    return small.choose(log - RAISED * float(np.log(2.0)), log)


def log_of(p: Tensor, floor: float = SMALLEST, most: float = 1.0) -> Tensor:
    """ln p, with p first clipped to [floor, most]."""
    least, positive = float(np.log(floor)), p > 0.0
    log = _ln(positive.choose(p.at_most(most), 1.0))
    return positive.choose(log.at_least(least), least)


def neg_log_rest_of(p: Tensor) -> Tensor:
    """−ln(1 − p), with p first clipped to [0, 1 − 2⁻⁵³]."""
    below = p < 1.0
    rest = below.choose(1.0 - p.at_least(0.0), 1.0)
    return below.choose(-rest.log(), -float(np.log1p(-LARGEST)))


def logit_of(p: Tensor) -> Tensor:
    """The logit of p, with p first clipped to [5e-324, 1 − 2⁻⁵³]."""
    inside = (p > 0.0) & (p < 1.0)
    q = inside.choose(p, 0.5)
    z = _ln(q) - (1.0 - q).log()
    return inside.choose(z, (p > 0.0).choose(HIGHEST, LOWEST))


def between_logits(f: Tensor) -> Tensor:
    """The logit of σ(f), which is f clipped to the logits of 0 and 1."""
    return f.within(LOWEST, HIGHEST)


def sum_of(terms: Sequence[Tensor]) -> Tensor:
    """The sum of tensors, added from left to right."""
    return functools.reduce(operator.add, terms)


# --- rows ---------------------------------------------------------------------------------------


def log_softmax(z: Tensor) -> Tensor:
    """ln softmax of each row of (n, k)."""
    below = z - z.greatest()
    return below - below.exp().total().log()


def softmax_of(z: Tensor) -> Tensor:
    """The softmax of each row of (n, k)."""
    return shares_of((z - z.greatest()).exp())


def shares_of(p: Tensor) -> Tensor:
    """Each row of (n, k) divided by its sum, which is not zero."""
    return p / p.total()


# --- Graphs as the package onnx writes them. Only here is it imported -----------------------------


class _Onnx:
    """Stands for the package onnx, which is imported when it is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_extra("onnx", extra="onnx"), name)


onnx: Any = _Onnx()


def element_type(dtype: Any) -> int:
    """The number by which ONNX calls a NumPy type."""
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def tensor_info(name: str, dtype: Any, shape: Sequence[str | int | None] | None) -> Any:
    """The declaration of an input or output of a model."""
    return onnx.helper.make_tensor_value_info(name, element_type(dtype), shape)


def add_nodes(graph: Graph, proto: Any) -> None:
    """Write the operations and constants of a graph into ONNX's own GraphProto."""
    for node in graph.nodes:
        made = onnx.helper.make_node(
            node.op,
            list(node.inputs),
            list(node.outputs),
            name=graph.prefix + node.outputs[0].removeprefix(graph.prefix),
            domain=node.domain or None,
            **{name: _attribute_value(value) for name, value in node.attributes.items()},
        )
        proto.node.append(made)
    written = onnx.numpy_helper.from_array
    proto.initializer.extend(written(value, name) for name, value in graph.constants.items())


def _attribute_value(value: Any) -> Any:
    """The value of an attribute as the package onnx takes it; a graph becomes the body of a
    loop."""
    if isinstance(value, np.dtype):
        return element_type(value)
    if isinstance(value, np.ndarray):
        return onnx.numpy_helper.from_array(value)
    if not isinstance(value, Graph):
        return value
    count, go_on, *state = value.inputs
    more, *after = value.outputs
    inputs = [tensor_info(count, np.int64, []), tensor_info(go_on, np.bool_, [])]
    inputs += [tensor_info(name, value.dtype, None) for name in state]
    outputs = [tensor_info(more, np.bool_, [])]
    outputs += [tensor_info(name, value.dtype, None) for name in after]
    body = onnx.helper.make_graph([], "body", inputs, outputs)
    add_nodes(value, body)
    return body
