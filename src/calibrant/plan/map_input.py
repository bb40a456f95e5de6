"""What a map reads while it is lowered: the score, or what other maps have made of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.losses import logit, sigmoid
from calibrant.plan.borders import WHOLE, Stretches, rank
from calibrant.plan.line_pieces import Pieces, trend_of
from calibrant.plan.nodes import (
    Clip,
    Constant,
    Function,
    Input,
    Linear,
    LinePieces,
    Log,
    Logit,
    MinusLogRest,
    Node,
    PieceChoice,
    PlanPrinter,
    Rising,
    Sigmoid,
    Softplus,
    Square,
    StepPieces,
    Variable,
    values_of,
)


class PlanTarget(NamedTuple):
    """What a plan is printed as: its name, what to do instead where a map cannot be printed, and
    whether the target has loops."""

    name: str
    advice: str
    iterates: bool = True

    def refuses(self, what: str, why: str = "") -> InputError:
        """The error that says what the target cannot hold, why, and what to do instead."""
        reason = f": {why}" if why else ""
        return InputError(f"{what} cannot be written as {self.name}{reason}. {self.advice}")


class Scale(NamedTuple):
    """A number as a node, and as a NumPy function of the input; None where it is the input
    itself."""

    node: Node
    function: Function | None


@dataclass(frozen=True)
class MapInput:
    """What a map reads, on the scale of scores and on that of their logits.

    Parameters
    ----------
    input : the number that comes in
    score, logit : the two scales
    stretches : where they rise and fall with the input; None where that is not known
    target : what the plan is for
    """

    input: Input
    score: Scale
    logit: Scale
    stretches: Stretches | None
    target: PlanTarget

    @property
    def on_logits(self) -> bool:
        """Whether the input is the logit of what the map is for."""
        return self.logit.function is None

    def after(self, node: Node, function: Function, of_logit: Function) -> MapInput:
        """What a later map reads: the value of a map, given as a node and as functions of the score
        and of its logit."""
        before = self.score.function
        composed = function
        if self.on_logits:
            composed = of_logit
        elif before is not None:

            def composed(s: Array) -> Array:
                return function(before(s))

        variable = node if isinstance(node, Variable) else Variable(node)
        return replace(
            self,
            score=Scale(variable, composed),
            logit=Scale(Logit(variable), lambda s: logit(composed(s))),
            stretches=stretches(node),
        )

    def features(
        self, clip: tuple[float, float] | None, logits: tuple[float, float]
    ) -> dict[str, Node]:
        """The features of `maps.logistic` by name, of scores moved into the interval ``clip``;
        where logits come in, of logits moved into the interval ``logits``."""
        s, z = self.score.node, self.logit.node
        if self.on_logits:
            z = Clip(z, *logits)
            s = Sigmoid(z)
            found = {"ln_p": _log_sigmoid(z), "neg_ln_1mp": Softplus(z)}
        else:
            if clip is not None:
                s = Clip(s, *clip)
                z = Logit(s)
            found = {"ln_p": Log(s), "neg_ln_1mp": MinusLogRest(s)}
        found |= {"ln_sigmoid": _log_sigmoid(s), "softplus": Softplus(s)}
        return found | {"x": s, "z": z, "z2": Square(z)}

    def steps(self, knots: Array, values: Array, on: str) -> Node:
        """A value between each two knots, which are on the scale "score" or "logit"."""
        if (values == values[0]).all():
            return Constant(float(values[0]))
        return StepPieces(self.input, (self._place(knots, on, jumps=True),), (values,))

    def lines(self, pieces: Pieces, on: str) -> Node:
        """Lines between knots, which are on the scale "score" or "logit"."""
        place = self._place(pieces.x, on, pieces.jumps)
        return LinePieces(self.input, self._scale(on).node, (place,), (pieces,))

    def _scale(self, on: str) -> Scale:
        return self.logit if on == "logit" else self.score

    def _place(self, knots: Array, on: str, jumps: bool) -> PieceChoice:
        if self.stretches is None and jumps:
            raise self.target.refuses(
                "a chain whose first maps neither rise nor fall and whose last one jumps",
                "rounding could choose the wrong side of a jump",
            )
        return PieceChoice(knots, self._scale(on).function, self.stretches)


def _log_sigmoid(x: Node) -> Node:
    """ln σ(x) = −ln(1 + exp(−x))."""
    return Linear(0.0, ((-1.0, Softplus(Linear(0.0, ((-1.0, x),)))),))


def start(target: PlanTarget, input: str = "score") -> MapInput:
    """What the first map reads: scores that come in, or scores whose logits come in."""
    s = Input()
    if input == "logit":
        return MapInput(s, Scale(Sigmoid(s), sigmoid), Scale(s, None), WHOLE, target)
    return MapInput(s, Scale(s, None), Scale(Logit(s), logit), WHOLE, target)


# --- where values rise and fall -------------------------------------------------------------------


def stretches(node: Node) -> Stretches | None:
    """Where a value rises and falls with the input; None where that is not known.

    This holds to the last bit: rounding never makes sums and products of rising numbers fall.

    >>> stretches(Linear(0.0, ((-2.0, Input()),))).sign.tolist()
    [-1]
    """
    return _Stretching().write(node)


class _Stretching(PlanPrinter[Stretches | None]):
    """The stretches of nodes, None where they are not known."""

    def __init__(self) -> None:
        self.known = {}

    def input(self, node: Input) -> Stretches:
        return WHOLE

    def constant(self, node: Constant) -> Stretches:
        return Stretches(WHOLE.first, np.zeros(1, dtype=np.int64))

    def rising(self, node: Rising | Clip) -> Stretches | None:
        return self.write(node.x)

    clip = rising

    def square(self, node: Square) -> None:
        return None

    def linear(self, node: Linear) -> Stretches | None:
        parts = [(c, self.write(term)) for c, term in node.terms]
        known = [(_sign(values_of(c)), part) for c, part in parts if part is not None]
        if len(known) < len(parts):
            return None
        first = np.unique(np.concatenate([part.first for _, part in known]))
        signs = np.array([sign * part.at(first) for sign, part in known], dtype=np.int64)
        least, most = signs.min(axis=0), signs.max(axis=0)
        return None if (least * most < 0).any() else Stretches(first, np.sign(least + most))

    def step_pieces(self, node: StepPieces) -> Stretches | None:
        [place], [values] = node.places, node.values
        return _of_pieces(place, np.zeros(len(values)), trend_of(values))

    def line_pieces(self, node: LinePieces) -> Stretches | None:
        [place], [pieces] = node.places, node.pieces
        return _of_pieces(place, pieces.high - pieces.low, pieces.trend)


def _of_pieces(place: PieceChoice, rise: Array, trend: int) -> Stretches | None:
    """The stretches of a table: those of what chooses, if the whole table rises or falls; else one
    for each piece."""
    before = place.stretches
    if before is None:
        return None
    if trend:
        return Stretches(before.first, before.sign * trend)
    first = rank(place.regions.low)
    sign = np.sign(rise[place.regions.piece]).astype(np.int64)
    return Stretches(first, before.at(first) * sign)


def _sign(coefficients: Array) -> int:
    [sign] = np.unique(np.sign(coefficients))
    return int(sign)
