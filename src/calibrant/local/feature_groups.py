"""The groups of rows for which corrections by columns change most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from calibrant.arrays import Flags
from calibrant.estimators.named_methods import BEFORE
from calibrant.local.attributes import CodedRows, Schema
from calibrant.local.feature_judging import FEATURES, FeatureTrial

#: the most columns, groups of a column and groups that are told of; the fewest rows of a group
MOST_COLUMNS, MOST_CATEGORIES, MOST_GROUPS, FEWEST_ROWS = 5, 20, 8, 50


@dataclass(frozen=True)
class GroupChange:
    """A group of rows held out, and its probabilities before and after.

    Attributes
    ----------
    column : str
    group : str
        The category, the range of numbers, or "missing".
    weight : float
        The weight of its rows.
    rate : float
        The share of positives among them.
    before, after : float
        The mean probability of the scores as they came, and with the trees.
    gain : float
        By how much the trees lower the mean log loss of its rows.
    """

    column: str
    group: str
    weight: float
    rate: float
    before: float
    after: float
    gain: float


def changed_groups(
    trial: FeatureTrial,
    schema: Schema,
    coded: CodedRows,
    positive: Flags,
    columns: Sequence[str],
) -> tuple[GroupChange, ...]:
    """The groups that gain most in total, among those of the most important ``columns``.

    Only groups whose mean probability moves closer to their rate are told of.
    """
    held, weight = trial.held, trial.sample.weight
    before, after = trial.judged[BEFORE], trial.judged[FEATURES]
    hit = positive[held]
    titles = [a.title for a in schema.attributes]
    gain = np.minimum(before.log_loss, 100.0) - after.log_loss  # that of a wrong 0 or 1 is infinite
    found = []
    for name in [one for one in columns if one in titles][:MOST_COLUMNS]:
        for group, inside in _groups(titles.index(name), schema, coded.take(held)):
            w = weight[inside]
            if int(inside.sum()) < FEWEST_ROWS or not w.sum() > 0:
                continue
            means = [
                float(w @ values[inside]) / float(w.sum())
                for values in (hit.astype(float), before.p, after.p, gain)
            ]
            found.append(GroupChange(name, group, float(w.sum()), *means))
    better = [one for one in found if abs(one.after - one.rate) < abs(one.before - one.rate)]
    order = sorted(better, key=lambda one: -one.gain * one.weight)
    return tuple(order[:MOST_GROUPS])


def _groups(j: int, schema: Schema, coded: CodedRows) -> Iterator[tuple[str, Flags]]:
    """The groups that one column makes, and which rows are in each."""
    attribute = schema.attributes[j]
    place = int(np.sum(schema.nominal[:j] == schema.nominal[j]))
    if attribute.categories is not None:
        codes = coded.codes[:, place]
        counts = np.bincount(codes[codes >= 0], minlength=len(attribute.categories))
        for code in np.argsort(-counts, kind="stable")[:MOST_CATEGORIES].tolist():
            yield str(attribute.categories[code]), codes == code
        yield "missing", codes < 0
        return
    values, absent = coded.numeric[:, place], coded.absent[:, place]
    yield "missing", absent
    if absent.all():
        return
    cuts = np.unique(np.quantile(values[~absent], (0.25, 0.5, 0.75)))
    ends = [-np.inf, *cuts.tolist(), np.inf]
    for low, high in pairwise(ends):
        yield _range(low, high), ~absent & (values > low) & (values <= high)


def _range(low: float, high: float) -> str:
    if np.isinf(low):
        return f"up to {high:.4g}"
    return f"above {low:.4g}" if np.isinf(high) else f"{low:.4g} to {high:.4g}"
