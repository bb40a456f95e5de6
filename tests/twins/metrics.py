"""Slow, obvious twins of the measures. They import nothing of ours.

Every twin takes rows (labels 0/1, probabilities, weights) and computes with fractions, so without
rounding, until a logarithm or a root is needed. A weight of zero means that the row is absent.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist

from scipy.stats import chi2

NORMAL = NormalDist()


def exact(y, p, w=None):
    """Rows of (label, probability, weight) as fractions, in ascending order of probability."""
    w = [1] * len(y) if w is None else w
    rows = [
        (int(b), Fraction(float(q)), Fraction(float(v))) for b, q, v in zip(y, p, w, strict=True)
    ]
    return sorted((r for r in rows if r[2] > 0), key=lambda r: r[1])


def cells(rows):
    """{probability: [weight of negatives, weight of positives]}, ascending."""
    found = {}
    for label, prob, weight in rows:
        found.setdefault(prob, [Fraction(0), Fraction(0)])[label] += weight
    return found


def total(rows):
    return sum(weight for _, _, weight in rows)


def is_whole(rows):
    """Whether the weight of every class at every probability is whole."""
    return all(weight.denominator == 1 for pair in cells(rows).values() for weight in pair)


# --- bins ---------------------------------------------------------------------------------------


def width_bin(prob, bins):
    """The number of edges k/B (as the floats they are) at or below the probability."""
    return sum(prob >= Fraction(k / bins) for k in range(1, bins))


def group_sizes(rows, bins):
    n = total(rows)
    if not is_whole(rows):
        return [n / bins] * bins
    return [n // bins + (1 if g < n % bins else 0) for g in range(bins)]


def mass_groups(rows, bins, ties):
    """Fill groups one after the other; a row that does not fit is divided between groups."""
    if ties == "together":
        by_score = cells(rows)
        queue = [(b / (a + b), q, a + b) for q, (a, b) in by_score.items()]
    elif ties == "rows":
        queue = [(Fraction(b), q, w) for b, q, w in sorted(rows, key=lambda r: r[1])]
    else:
        queue = [(Fraction(b), q, w) for b, q, w in sorted(rows, key=lambda r: (r[1], r[0]))]
    groups = []
    for size in group_sizes(rows, bins):
        room, members = size, []
        while room > 0:
            label, prob, weight = queue.pop(0)
            if weight > room:
                queue.insert(0, (label, prob, weight - room))
                weight = room
            members.append((label, prob, weight))
            room -= weight
        if members:
            groups.append(members)
    return groups


def bins_of(rows, bins, binning, ties="together"):
    if binning == "mass":
        return mass_groups(rows, bins, ties)
    found = {}
    for label, prob, weight in rows:
        found.setdefault(width_bin(prob, bins), []).append((label, prob, weight))
    return list(found.values())


def gaps(groups):
    """(weight, |mean prediction − frequency|) of each group."""
    out = []
    for members in groups:
        n = sum(w for _, _, w in members)
        out.append(
            (n, abs(sum(w * q for _, q, w in members) - sum(w * b for b, _, w in members)) / n)
        )
    return out


def ece(y, p, w=None, bins=10, binning="width", ties="together"):
    rows = exact(y, p, w)
    return float(sum(n * gap for n, gap in gaps(bins_of(rows, bins, binning, ties))) / total(rows))


def mce(y, p, w=None, bins=10, binning="width", ties="together"):
    return float(max(gap for _, gap in gaps(bins_of(exact(y, p, w), bins, binning, ties))))


def rms(y, p, w=None, bins=10, binning="width", ties="together"):
    rows = exact(y, p, w)
    mean = sum(n * gap**2 for n, gap in gaps(bins_of(rows, bins, binning, ties))) / total(rows)
    return math.sqrt(mean)


def parts_of_rows(rows, bins, binning):
    """For each bin its rows as (weight, label − probability); a tie's rows are divided alike."""
    found = [[] for _ in range(bins)]
    if binning == "width":
        for label, prob, weight in rows:
            found[width_bin(prob, bins)].append((weight, label - prob))
        return [members for members in found if members]
    ends = [sum(group_sizes(rows, bins)[: g + 1]) for g in range(bins)]
    for label, prob, weight in rows:
        low = sum(v for _, q, v in rows if q < prob)
        high = low + sum(v for _, q, v in rows if q == prob)
        for members, end, begin in zip(found, ends, [0, *ends], strict=False):
            inside = min(high, end) - max(low, begin)
            if inside > 0:
                members.append((weight * inside / (high - low), label - prob))
    return [members for members in found if members]


def debiased(y, p, w=None, bins=10, binning="width", norm=2):
    """The mean over cases of the square, or of the distance, less what chance adds to it.

    The square of a mean has an unbiased estimate: the mean product of two different rows.
    """
    rows = exact(y, p, w)
    value = 0.0
    for members in parts_of_rows(rows, bins, binning):
        size = sum(a for a, _ in members)
        mean = sum(a * d for a, d in members) / size
        products = pairs = Fraction(0)
        for i, (a, d) in enumerate(members):
            for j, (b, e) in enumerate(members):
                if i != j:
                    products += a * b * d * e
                    pairs += a * b
        square = products / pairs if pairs else Fraction(0)
        value += float(size / total(rows)) * (
            float(square) if norm == 2 else less_chance(float(abs(mean)), float(mean**2 - square))
        )
    return max(value, 0.0)


def less_chance(gap, variance):
    """2·gap − E|gap + √variance·Z|, by a sum over a fine grid of Z."""
    if variance <= 0:
        return gap
    steps = [(k + 0.5) / 2000 for k in range(2000)]
    blurred = sum(abs(gap + math.sqrt(variance) * NORMAL.inv_cdf(u)) for u in steps) / len(steps)
    return 2 * gap - blurred


def sweep(y, p, w=None, most=1000):
    """Bins of whole ties: B = 2, 3, … of equal mass until a frequency falls."""
    ties = list(cells(exact(y, p, w)).values())
    n = sum(a + b for a, b in ties)
    found = [ties]
    for bins in range(2, most + 1):
        groups, members, mass, closed = [], [], Fraction(0), 0
        for a, b in ties:
            members.append((a, b))
            mass += a + b
            if mass * bins // n > closed:
                groups.append(members)
                members, closed = [], mass * bins // n
        rate = [sum(b for _, b in group) / sum(a + b for a, b in group) for group in groups]
        if any(after < before for before, after in pairwise(rate)):
            break
        found = groups
    return [len(group) for group in found]


# --- proper scores, order -----------------------------------------------------------------------


def square(rows):
    return sum(w * (b - q) ** 2 for b, q, w in rows) / total(rows)


def brier(y, p, w=None):
    return float(square(exact(y, p, w)))


def log(x):
    """The logarithm of a fraction that a float may not hold."""
    return math.log(x.numerator) - math.log(x.denominator)


def log_mean(rows):
    loss = 0.0
    for b, q, w in rows:
        chance = q if b else 1 - q
        if chance == 0:
            return math.inf
        loss -= float(w) * log(chance)
    return loss / float(total(rows))


def log_loss(y, p, w=None, clip=None):
    if clip is not None:
        p = [min(max(q, clip), 1 - clip) for q in p]
    return log_mean(exact(y, p, w))


def auc(y, p, w=None):
    rows = exact(y, p, w)
    won = pairs = Fraction(0)
    for b, q, v in rows:
        for c, r, u in rows:
            if b == 1 and c == 0:
                pairs += v * u
                won += v * u * (1 if q > r else Fraction(1, 2) if q == r else 0)
    return float(won / pairs)


def accuracy(y, p, w=None):
    rows = exact(y, p, w)
    return float(sum(v for b, q, v in rows if (q >= Fraction(1, 2)) == (b == 1)) / total(rows))


# --- CalBin -------------------------------------------------------------------------------------


def calbin(y, p, w=None, window=None):
    """Repeat rows, then look at each class and each window in turn."""
    rows = [(b, q) for b, q, v in exact(y, p, w) for _ in range(int(v))]
    n = len(rows)
    size = min(n, max(1, n // 10) if window is None else window)
    by_class = []
    for j in (0, 1):
        mine = sorted((q if j else 1 - q, int(b == j)) for b, q in rows)
        tied = {}
        for q, hit in mine:
            tied.setdefault(q, []).append(hit)
        mine = [(q, Fraction(sum(tied[q]), len(tied[q]))) for q, _ in mine]
        errors = []
        for start in range(n - size + 1):
            inside = mine[start : start + size]
            f = sum(hit for _, hit in inside) / size
            errors.append(sum(abs(q - f) for q, _ in inside) / size)
        by_class.append(sum(errors) / len(errors))
    return float(sum(by_class) / 2)


# --- Hosmer–Lemeshow ----------------------------------------------------------------------------


def whole_groups(rows, bins, binning):
    """Groups of whole ties: a tie belongs to the group that it is reached in."""
    if binning == "width":
        return bins_of(rows, bins, "width")
    groups, members, filled, closed = [], [], Fraction(0), 0
    borders = [sum(group_sizes(rows, bins)[: g + 1]) for g in range(bins)]
    for prob, (n0, n1) in cells(rows).items():
        members += [(0, prob, n0), (1, prob, n1)]
        filled += n0 + n1
        reached = sum(filled >= border for border in borders)
        if reached > closed:
            groups.append(members)
            members, closed = [], reached
    return groups


def hosmer_lemeshow(y, p, w=None, groups=10, binning="mass", fitted=False):
    """(statistic, df, p-value, groups used)"""
    rows = exact(y, p, w)
    statistic, used, impossible = Fraction(0), 0, False
    for members in whole_groups(rows, groups, binning):
        n = sum(v for _, _, v in members)
        seen = sum(v * b for b, _, v in members)
        expected = sum(v * q for _, q, v in members)
        variance = expected * (1 - expected / n)
        if variance == 0 and seen == expected:
            continue
        used += 1
        impossible = impossible or variance == 0
        statistic += 0 if variance == 0 else (seen - expected) ** 2 / variance
    df = used - 2 if fitted else used
    statistic = math.inf if impossible or statistic > Fraction(1e300) else float(statistic)
    return statistic, df, float(chi2.sf(statistic, df)) if df else 1.0, used


# --- profit -------------------------------------------------------------------------------------


def profit(y, p, benefit, cost, w=None):
    """(profit, optimum, act on all, weight acted upon), one row after the other."""
    n = len(y)
    w = [1.0] * n if w is None else w
    benefit = [benefit] * n if isinstance(benefit, (int, float)) else benefit
    cost = [cost] * n if isinstance(cost, (int, float)) else cost
    got = best = everyone = acted = 0.0
    for label, prob, b, c, v in zip(y, p, benefit, cost, w, strict=True):
        gain = v * (b * label - c)
        everyone += gain
        best += max(gain, 0.0)
        if prob * b > c:
            got += gain
            acted += v
    return got, best, everyone, acted


# --- decompositions -----------------------------------------------------------------------------


def xlog(a, b):
    """a · ln b with 0 · ln 0 = 0."""
    return 0.0 if a == 0 else -math.inf if b == 0 else float(a) * log(b)


def divergence(loss, r, p):
    if loss == "brier":
        return float((r - p) ** 2)
    if r == p:
        return 0.0
    return xlog(r, r) - xlog(r, p) + xlog(1 - r, 1 - r) - xlog(1 - r, 1 - p)


def entropy(loss, r):
    return float(r * (1 - r)) if loss == "brier" else -xlog(r, r) - xlog(1 - r, 1 - r)


def degroot_fienberg(y, p, w=None, loss="brier"):
    """(calibration, refinement)"""
    rows = exact(y, p, w)
    n, calibration, refinement = float(total(rows)), 0.0, 0.0
    for prob, (n0, n1) in cells(rows).items():
        r = n1 / (n0 + n1)
        calibration += float(n0 + n1) * divergence(loss, r, prob) / n
        refinement += float(n0 + n1) * entropy(loss, r) / n
    return calibration, refinement


def murphy(y, p, w=None, loss="brier", bins=None, binning="width"):
    """(reliability, resolution, uncertainty)"""
    rows = exact(y, p, w)
    n = float(total(rows))
    overall = sum(v for b, _, v in rows if b) / total(rows)
    if bins is None:
        groups = [[(0, q, n0), (1, q, n1)] for q, (n0, n1) in cells(rows).items()]
    else:
        groups = whole_groups(rows, bins, binning)
    reliability = resolution = 0.0
    for members in groups:
        size = sum(v for _, _, v in members)
        mean = sum(v * q for _, q, v in members) / size
        r = sum(v * b for b, _, v in members) / size
        reliability += float(size) * divergence(loss, r, mean) / n
        resolution += float(size) * divergence(loss, r, overall) / n
    return reliability, resolution, entropy(loss, overall)


def what_chance_adds(y, p, w, weights, bins, binning):
    """Σ n_k v_k/n of the groups of `murphy`, and v of all rows.

    v is Σw²/(Σw)² times half the mean squared difference of labels over pairs of rows.
    """
    rows = exact(y, p, w)
    if bins is None:
        groups = [[row for row in rows if row[1] == q] for q in cells(rows)]
    else:
        whole = whole_groups(rows, bins, binning)
        groups = [[r for r in rows if r[1] in {q for _, q, _ in part}] for part in whole]

    def variance(members):
        if weights == "counts":
            members = [(b, q, Fraction(1)) for b, q, v in members for _ in range(int(v))]
        pairs = [(a, b) for i, a in enumerate(members) for j, b in enumerate(members) if i != j]
        if not pairs:
            return Fraction(0)
        differ = sum(a[2] * b[2] * (a[0] - b[0]) ** 2 for a, b in pairs) / 2
        chance = differ / sum(a[2] * b[2] for a, b in pairs)
        return chance * sum(v * v for _, _, v in members) / total(members) ** 2

    of_groups = sum(total(part) * variance(part) for part in groups) / total(rows)
    return float(of_groups), float(variance(rows))


def isotonic(rows):
    """{probability: fitted value} by the min–max formula: max over a ≤ i of min over b ≥ i."""
    table = list(cells(rows).items())
    fitted = {}
    for i, (prob, _) in enumerate(table):
        best = []
        for a in range(i + 1):
            means = []
            for b in range(i, len(table)):
                n0 = sum(counts[0] for _, counts in table[a : b + 1])
                n1 = sum(counts[1] for _, counts in table[a : b + 1])
                means.append(n1 / (n0 + n1))
            best.append(min(means))
        fitted[prob] = max(best)
    return fitted


def corp(y, p, w=None, loss="brier"):
    """(miscalibration, discrimination, uncertainty), as differences of three mean scores"""
    rows = exact(y, p, w)
    score = square if loss == "brier" else log_mean
    fitted = isotonic(rows)
    base = sum(v for b, _, v in rows if b) / total(rows)
    own = score(rows)
    best = score([(b, fitted[q], v) for b, q, v in rows])
    constant = score([(b, base, v) for b, _, v in rows])
    return float(own - best), float(constant - best), float(constant)


def hull_segments(rows):
    """{probability: frequency on its segment}, by walking around the ROC convex hull.

    From the highest prediction down, each tie goes (negatives, positives) to the right and up; a
    corner that lies on or below the line through its neighbours is cut off.
    """
    steps = list(cells(rows).items())[::-1]
    reached = (Fraction(0), Fraction(0), 0)
    corners = [reached]
    for _, (n0, n1) in steps:
        reached = (reached[0] + n0, reached[1] + n1, reached[2] + 1)
        while len(corners) > 1:
            (x0, y0, _), (x1, y1, _) = corners[-2], corners[-1]
            if (x1 - x0) * (reached[1] - y0) < (y1 - y0) * (reached[0] - x0):
                break
            corners.pop()
        corners.append(reached)
    frequency = {}
    for (x0, y0, first), (x1, y1, last) in pairwise(corners):
        rise, run = y1 - y0, x1 - x0
        for prob, _ in steps[first:last]:
            frequency[prob] = rise / (rise + run)
    return frequency


def flach_matsubara(y, p, w=None):
    """(calibration, ordering, refinement)"""
    rows = exact(y, p, w)
    r = hull_segments(rows)
    n = total(rows)
    calibration = sum(v * (q - r[q]) ** 2 for _, q, v in rows) / n
    ordering = 2 * sum(v * (q - r[q]) * (r[q] - b) for b, q, v in rows) / n
    refinement = sum(v * r[q] * (1 - r[q]) for _, q, v in rows) / n
    return float(calibration), float(ordering), float(refinement)
