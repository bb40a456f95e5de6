"""A map per segment: a CASE for few of them, for many a table of parameters and one of pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.export.leaves import Leaf, leaves, parameters, slots
from calibrant.export.pieces import pieces
from calibrant.export.sql.axis import Axis
from calibrant.export.sql.cells import cell
from calibrant.export.sql.expressions import refuse_jumps, write
from calibrant.export.sql.formulas import STEEPEST, factor, feature, logit_of, sigmoid_of
from calibrant.export.sql.layout import case, clamp, inside, string
from calibrant.export.sql.lines import bounds, is_steep, line, linked
from calibrant.export.sql.page import Page
from calibrant.losses import logit
from calibrant.maps import Logistic, Segmented
from calibrant.maps.logistic import FEATURES
from calibrant.maps.segmented import Key
from calibrant.plan.borders import LARGEST_DOUBLE
from calibrant.plan.grids import grid_of

__all__ = ["write_segmented"]

Array = NDArray[np.float64]


def write_segmented(map_: Segmented, segment: str, axis: Axis, page: Page) -> str:
    """The map of a score and of a column of segments as SQL."""
    used = _used(map_)
    if not used:
        return write(map_.default, axis, (), page)
    column = segment if isinstance(map_.keys[used[0]], int) else page.dialect.key.format(segment)
    if page.lookup:
        return _looked_up(map_, used, column, axis, page)
    branches = [
        (_literal(map_.keys[i], page), write(map_.member(map_.keys[i]), axis, (), page))
        for i in used
    ]
    return case(branches, write(map_.default, axis, (), page), operand=column)


def _used(map_: Segmented) -> list[int]:
    """The places of keys that have a map of their own; those of a column are of one type."""
    kinds = {type(key) for key in map_.keys}
    if len(kinds) > 1:
        raise InputError(
            "a column of SQL holds text or numbers, but the keys of this map are both. Make two "
            "maps of it, one of each type."
        )
    for key in map_.keys:
        if isinstance(key, int) and not -(2**63) <= key < 2**63:
            raise InputError(
                f"segments must be integers of at most 64 bits to be a column of SQL, but {key} "
                "came. Use text for such keys."
            )
    weights = np.ones(len(map_.keys)) if map_.weights is None else map_.weights
    return np.flatnonzero(weights > 0.0).tolist()


def _literal(key: Key, page: Page) -> str:
    return str(key) if isinstance(key, int) else string(key + page.dialect.key_end, page.dialect)


# --- many segments ------------------------------------------------------------------------------


def _looked_up(map_: Segmented, used: list[int], column: str, axis: Axis, page: Page) -> str:
    common = write(map_.default, axis, (), page.precise if map_.input == "default" else page)
    if map_.input == "default":
        axis = axis.then(inside("(", common, ")"), map_.default, map_.default.trend)
    place = {segment: i for i, segment in enumerate(used)}
    parts = slots([x for i in used for x in leaves(map_.maps[i], Leaf(i, 1.0, (), None))])
    keys = [map_.keys[i] for i in used]
    shares = np.ones(len(used)) if map_.weights is None else map_.weights[used]
    columns: dict[str, Any] = {
        "segment": np.array(keys) if isinstance(keys[0], int) else keys,
        "code": np.arange(len(used)),
        "share": shares,
    }
    for s, slot in enumerate(parts):
        columns |= {f"part{s}_{n}": c for n, c in parameters(slot, place).items()}
    # what is 1 for all need not be looked up
    plain = {name for name in columns if name == "share" or name.endswith("weight")}
    plain = {name for name in plain if (columns[name] == 1.0).all()}
    columns = {name: values for name, values in columns.items() if name not in plain}
    about = f"{len(used):,} segments: the number of each, and what its map is made of"
    joined = page.join(about, columns, 1, {"segment": column})
    texts = []
    for s, slot in enumerate(parts):
        head = f"part{s}_"
        mine = {n.removeprefix(head): c for n, c in joined.items() if n.startswith(head)}
        value = _value(slot, place, mine, joined["code"], axis, page)
        texts.append(inside(f"{mine['weight']} * (", value, ")") if "weight" in mine else value)
    own = texts[0] if len(texts) == 1 else clamp("\n+ ".join(texts), page.dialect, high=1.0)
    if "share" in joined:
        rest = f"({page.dialect.number(1.0)} - {joined['share']})"
        mixed = ((joined["share"], own), (rest, common))
        own = "\n+ ".join(inside(f"{share} * (", text, ")") for share, text in mixed)
    return case([(f"{joined['code']} IS NULL", common)], own)


def _value(
    slot: Sequence[Leaf],
    place: Mapping[int, int],
    mine: Mapping[str, str],
    code: str,
    axis: Axis,
    page: Page,
) -> str:
    """The value of the parts of one form, whatever the segment."""
    steps = list(zip(*(leaf.sigmoids for leaf in slot), strict=True))
    value = axis.value
    for step, maps in enumerate(steps):
        value = _sigmoid(value, maps, {n: mine.get(f"{step}_{n}", "") for n in NAMES}, page)
        value = value if step == len(steps) - 1 else inside("(", value, ")")
    last = slot[0].last
    if isinstance(last, Logistic):
        return value
    value = inside("(", value, ")") if steps else value
    axes = [_axis(leaf, axis) for leaf in slot]
    if any(own.trend == 0 for own in axes):
        for leaf in slot:
            refuse_jumps(leaf.last, page)
        axes = [Axis(value, value)] * len(slot)
    joined = _pieces(slot, axes, place, code, page)
    if last.input == "logit":
        value = logit_of(Axis(value, value), page.dialect)
    elif not steps:
        value = factor(value, page.dialect)
    text = line(value, joined, page)
    text = text if "value" in joined else linked(text, last, joined, page)
    # a segment whose map has no such part finds no piece
    return inside("COALESCE(", text, f", {page.dialect.number(0.0)})") if "weight" in mine else text


#: the columns of a sigmoid
NAMES = ("intercept", *FEATURES, "clip_low", "clip_high")


def _sigmoid(s: str, maps: Sequence[Logistic], own: Mapping[str, str], page: Page) -> str:
    """σ(intercept + Σ coefficient · φ(s)), coefficients being columns."""
    dialect = page.dialect
    if own["clip_low"]:
        s = clamp(s, dialect, own["clip_low"], own["clip_high"])
    total = own["intercept"]
    for name in FEATURES:
        if own[name]:
            sign = "-" if name == "neg_ln_1mp" else "+"
            total += f"\n{sign} {own[name]} * {_guarded(name, s, maps, page)}"
    return sigmoid_of(total, dialect, bounded=False)


def _guarded(name: str, s: str, maps: Sequence[Logistic], page: Page) -> str:
    """φ of any score, such that its product with a coefficient does not overflow."""
    dialect = page.dialect
    if name == "x":
        limit = min(max(_far(m) for m in maps), LARGEST_DOUBLE)
        return s if dialect.infinite else clamp(factor(s, dialect), dialect, -limit, limit)
    ends = FEATURES[name](np.array([0.0, 1.0])) * (-1.0 if name == "neg_ln_1mp" else 1.0)
    low, high = (dialect.number(float(end)) for end in ends)
    inner = feature(name, s, dialect)
    zero, one = dialect.number(0.0), dialect.number(1.0)
    return inside("(", case([(f"{s} <= {zero}", low), (f"{s} >= {one}", high)], inner), ")")


def _far(map_: Logistic) -> float:
    """How far out the term of the score decides alone: scores further out change nothing."""
    at = np.array([0.0, 1.0])
    terms = {name: abs(c) for name, c in map_.terms if c}
    factor = terms.pop("x", 0.0)
    rest = sum(c * float(np.abs(FEATURES[name](at)).max()) for name, c in terms.items())
    with np.errstate(over="ignore"):
        far = np.float64(2.0 * STEEPEST + abs(map_.intercept) + rest) / factor if factor else 0.0
    return max(float(far), 1.0)


def _axis(leaf: Leaf, axis: Axis) -> Axis:
    """What the pieces of one leaf read, as a function of the chooser."""
    for step in leaf.first:
        axis = axis.then(axis.value, step, step.trend)
    return axis


def _pieces(
    slot: Sequence[Leaf], axes: Sequence[Axis], place: Mapping[int, int], code: str, page: Page
) -> dict[str, str]:
    """The piece of each row, by its segment and its cell."""
    step = logit if slot[0].last.input == "logit" else None
    found = [own.regions(leaf.last.x, step) for leaf, own in zip(slot, axes, strict=True)]
    low = np.sort(np.concatenate([own.low for own in found]))
    grid = grid_of(low, owners=len(slot), lean=True)
    maps = [leaf.last for leaf in slot]
    steep = any(is_steep(map_, own).any() for map_, own in zip(maps, axes, strict=True))
    parts = []
    for map_, own, here in zip(maps, axes, found, strict=True):
        more = bounds(map_, own, here) if steep else {}
        parts.append(page.rows(grid, here, pieces(map_) | more))
    counts = [len(part["cell"]) for part in parts]
    codes = np.repeat([place[leaf.segment] for leaf in slot], counts)
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    chooser = axes[0].chooser
    count = sum(len(own.low) for own in found)
    return page.join(
        f"{count:,} pieces of maps, each once for every segment and cell of scores that it touches",
        {"code": codes, **table},
        3,
        {"code": code, "cell": cell(grid, chooser, page.dialect)},
        chooser,
    )
