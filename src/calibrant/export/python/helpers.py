# ruff: noqa: B905  (copied into texts for Python 3.8, whose zip knows no strict)
"""Functions that an exported text may need, of the standard library alone.

`to_python` copies the source of those that a calibrator uses. So each must stand for itself beside
its fellows: no imports but bisect and math, no names of this package, nothing newer than Python
3.8. They treat one row at a time; the arithmetic is that of the maps, in the same order. Docstrings
are copied, too: to change one is to change every exported text.
"""

from __future__ import annotations

import math

__all__: list[str] = []


def _finite(score: float) -> float:
    """The score as a float; ValueError where it is missing, NaN or infinite."""
    if score is None or not math.isfinite(score):
        raise ValueError(f"a score must be a finite number, but {score!r} came")
    return float(score)


def _row(scores: list[float], size: int) -> list[float]:
    """The scores as floats; ValueError where they are too few, too many or not finite."""
    found = [_finite(score) for score in scores]
    if len(found) != size:
        raise ValueError(f"{size} scores must come, but {len(found)} came")
    return found


def _check_segment(segment: object, known: str) -> None:
    """ValueError where a segment is no name, or can be none of those that are known."""
    whole = hasattr(segment, "__index__")
    if isinstance(segment, float) and segment.is_integer():
        whole = abs(segment) <= 2.0**53  # beyond that floats cannot tell integers apart
    kind = "text" if isinstance(segment, str) else "numbers" if whole else "neither"
    if kind not in known:
        raise ValueError(f"a segment must be among {known}, but {segment!r} came")


def _check_distribution(scores: list[float]) -> None:
    """ValueError where scores are no probabilities of the sum 1."""
    if min(scores) < 0.0 or max(scores) > 1.0 or abs(sum(scores) - 1.0) > 1e-3:
        raise ValueError(f"scores must be probabilities of the sum 1, but {scores!r} came")


def _sigmoid(f: float) -> float:
    """1 / (1 + exp(-f)), without overflow."""
    if f >= 0.0:
        return 1.0 / (1.0 + math.exp(-f))
    e = math.exp(f)
    return e / (1.0 + e)


def _logit(p: float) -> float:
    """ln p - ln(1 - p); p is first moved into [5e-324, 1 - 2**-53]."""
    p = min(max(p, 5e-324), 1.0 - 2.0**-53)
    return math.log(p) - math.log1p(-p)


def _ln(p: float) -> float:
    """ln p; p is first moved into [5e-324, 1 - 2**-53]."""
    return math.log(min(max(p, 5e-324), 1.0 - 2.0**-53))


def _minus_ln_rest(p: float) -> float:
    """-ln(1 - p); p is first moved into [5e-324, 1 - 2**-53]."""
    return -math.log1p(-min(max(p, 5e-324), 1.0 - 2.0**-53))


def _softplus(f: float) -> float:
    """ln(1 + exp(f)), without overflow."""
    return max(f, 0.0) + math.log1p(math.exp(-abs(f)))


def _on_line(
    x: float,
    knots: tuple[float, ...],
    left: tuple[float, ...],
    right: tuple[float, ...],
    piece: int,
) -> float:
    """The piece after so many knots at x: from right of one to left of the next, flat outside."""
    if piece == 0:
        return left[0]
    if piece == len(knots):
        return right[-1]
    start, end = knots[piece - 1], knots[piece]
    low, high = right[piece - 1], left[piece]
    if end - start == math.inf:  # farther apart than the largest double
        x, start, end = x / 2, start / 2, end / 2
    value = low + (x - start) / (end - start) * (high - low)
    return min(max(value, min(low, high)), max(low, high))


def _log_softmax(z: list[float]) -> list[float]:
    """z - ln(sum of exp(z)), without overflow."""
    peak = max(z)
    total = math.log(sum(math.exp(value - peak) for value in z))
    return [value - peak - total for value in z]


def _shares(values: list[float]) -> list[float]:
    """The values divided by their sum, unless that is zero."""
    total = sum(values)
    return [value / total for value in values] if total > 0.0 else values


def _with_largest(p: list[float], q: float) -> list[float]:
    """The largest value becomes q, or what is just above the second; the others share the rest."""
    top, k = max(p), len(p)
    others = [value for value in p if value < top]
    ties, rest = k - len(others), sum(others)
    second = max(others, default=0.0)
    equal = second / (rest + ties * second) if rest > 0.0 else 1.0 / k
    first = min(max(q, 1.000001 * equal), 1.0 / ties)
    left = max(1.0 - ties * first, 0.0)
    even = left / max(k - ties, 1)
    below = [value / rest * left if rest > 0.0 else even for value in p]
    return [share if value < top else first for value, share in zip(p, below)]


def _normalized(r: list[float]) -> list[float]:
    """The values divided by their sum; all the same where that is zero."""
    total = sum(r)
    return [value / total if total > 0.0 else 1.0 / len(r) for value in r]


def _projected(r: list[float], weights: tuple[float, ...]) -> list[float]:
    """The p of sum 1 with the least sum of n * (p - r)**2: max(r - t / n, 0) for the right t."""
    total, steps, t = -1.0, 0.0, 0.0
    for limit, value, n in sorted(((v * n, v, n) for v, n in zip(r, weights)), reverse=True):
        total, steps = total + value, steps + 1.0 / n
        if limit <= total / steps:
            break
        t = total / steps
    return _shares([max(value - t / n, 0.0) for value, n in zip(r, weights)])


def _balanced(r: list[float], weights: tuple[float, ...]) -> list[float]:
    """Coupling of one class against all: n * (p - r) = m * p * (1 - p), with the m of sum 1."""
    k, above = len(r), sum(r) > 1.0
    low = -sum(weights) if above else 0.0
    high = 0.0 if above else max(weights) * k / (k - 1.0)
    m = 0.0
    p = list(r)
    for _ in range(200):
        found = [_root(share, n, m) for share, n in zip(r, weights)]
        p = [value for value, _ in found]
        excess = sum(p) - 1.0
        if abs(excess) <= 4e-16 * k or high - low <= 1e-15 * abs(m):
            break
        if excess < 0.0:
            low = m
        else:
            high = m
        # Newton's step, or half-way where that leaves the bracket
        slope = sum(value * (1.0 - value) / max(root, 1e-300) for value, root in found)
        m -= excess / max(slope, 1e-300)
        if not low < m < high:
            m = 0.5 * (low + high)
    return _shares(p)


def _root(r: float, n: float, m: float) -> tuple[float, float]:
    """The p in [0, 1] with m * p**2 + (n - m) * p = n * r, and the discriminant's root."""
    q = n - m
    gap = q * q + 4.0 * m * n * r if m > 0.0 else (n + m) ** 2 - 4.0 * m * n * (1.0 - r)
    root = math.sqrt(gap)
    p = 2.0 * n * r / (q + root) if q > 0.0 else (root - q) / (2.0 * m)
    return min(p, 1.0), root


def _factored(matrix: list[list[float]]) -> list[list[float]]:
    """L and D of matrix = L*D*L'; a pivot that is not positive changes its sign."""
    k = len(matrix)
    a = [list(row) for row in matrix]
    for j in range(k):
        if not a[j][j] > 0.0:
            a[j][j] = max(-a[j][j], 1e-10)
        column = [a[i][j] for i in range(k)]
        for i in range(j + 1, k):
            a[i][j] = column[i] / a[j][j]
            for c in range(j + 1, i + 1):
                a[i][c] -= a[i][j] * column[c]
    return a


def _solved(factors: list[list[float]], b: list[float]) -> list[float]:
    """The x with L*D*L' * x = b."""
    x, k = list(b), len(b)
    for i in range(k):
        x[i] -= sum(factors[i][j] * x[j] for j in range(i))
    x = [x[i] / factors[i][i] for i in range(k)]
    for i in reversed(range(k)):
        x[i] -= sum(factors[j][i] * x[j] for j in range(i + 1, k))
    return x


def _least_squares(
    r: list[float],
    columns: tuple[tuple[tuple[int, ...], tuple[int, ...], float], ...],
    k: int,
) -> list[float]:
    """The p of k classes with the least sum of n * ((1 - r) * p(plus) - r * p(minus))**2.

    p = y / sum(y), where y >= 0 minimises y' * (Q + c) * y / 2 - sum(y): guess which classes are
    zero, solve for the others, turn those of the wrong sign, the last one only if that drags on.
    """
    mean = sum(n for _, _, n in columns) / k
    full = [[mean] * k for _ in range(k)]
    for share, (plus, minus, n) in zip(r, columns):
        form = [(i, 1.0 - share) for i in plus] + [(i, -share) for i in minus]
        for i, a in form:
            for j, b in form:
                full[i][j] += n * a * b
    free, fewest, patience = [True] * k, k + 1, 3
    y = [1.0] * k
    for _ in range(200):
        y, slope = _with_zeros(full, free, 1e-11 * mean)
        least = -1e-13 * max(y)
        wrong = [i for i in range(k) if (y[i] < least if free[i] else slope[i] < -1e-13)]
        if not wrong:
            break
        patience = 3 if len(wrong) < fewest else patience - 1
        fewest = min(len(wrong), fewest)
        for i in wrong if patience >= 0 else wrong[-1:]:
            free[i] = not free[i]
    return _shares([max(value, 0.0) for value in y])


def _with_zeros(
    full: list[list[float]], free: list[bool], ridge: float
) -> tuple[list[float], list[float]]:
    """The y that solves full * y = 1 for the free classes, zero for others; and full * y - 1."""
    k = len(full)
    b = [1.0 if own else 0.0 for own in free]
    part = [[full[i][j] * b[i] * b[j] for j in range(k)] for i in range(k)]
    for i in range(k):
        part[i][i] += ridge + 1.0 - b[i]
    factors = _factored(part)
    y, slope = [0.0] * k, [-1.0] * k
    for _ in range(3):  # the second and third time refine the first
        step = _solved(factors, [-own * at for own, at in zip(b, slope)])
        y = [own + more for own, more in zip(y, step)]
        slope = [sum(full[i][j] * y[j] for j in range(k)) - 1.0 for i in range(k)]
    return y, slope


def _coupled(
    r: list[float],
    columns: tuple[tuple[tuple[int, ...], tuple[int, ...], float], ...],
    k: int,
) -> list[float]:
    """The p of k classes that minimises the sum of n * KL(r, p(plus) / p(plus and minus)).

    Newton's method in relative steps from the least squares; where a step would raise the sum,
    the best of some shorter ones and of the multiplicative one, which never does.
    """
    p, total = _least_squares(r, columns, k), sum(n for _, _, n in columns)
    parts = [(sum(p[i] for i in plus), sum(p[i] for i in minus)) for plus, minus, _ in columns]
    if all(abs((1.0 - share) * a - share * b) <= 4e-15 for share, (a, b) in zip(r, parts)):
        return p
    share = 1e-12 if all(len(plus) == len(minus) == 1 for plus, minus, _ in columns) else 1e-2
    p = [(1.0 - share) * value + share / k for value in p]
    before = _divergence(p, r, columns)
    for _ in range(250):
        v, u, factors = _newton(p, r, columns)
        small = max(abs(value * step) for value, step in zip(p, u)) <= 1e-11
        small = small or abs(sum(a * b for a, b in zip(v, u))) <= 1e-18 * total
        done = small and max(abs(value) for value in v) <= 1e-10 * total
        new = _moved(p, [max(1.0 + step, 1e-3) for step in u])
        after = _divergence(new, r, columns)
        if not (done or after <= before + 1e-14 * (total + before)):
            longest = (1.0 - 1e-3) / max(-min(u), 1.0)
            width = max(u) - min(u)
            mild = math.log1p(width) / width if width > 0.0 else 1.0
            changes = [factors, [math.exp(min(max(mild * step, -30.0), 30.0)) for step in u]]
            for part in (longest, 1 / 4, 1 / 16, 1 / 64):
                changes.append([max(1.0 + part * step, 1e-3) for step in u])
            tried = [_moved(p, change) for change in changes]
            new = min(tried, key=lambda trial: _divergence(trial, r, columns))
            after = _divergence(new, r, columns)
        p, before = new, after
        if done:
            break
    return _shares(p)


def _newton(
    p: list[float],
    r: list[float],
    columns: tuple[tuple[tuple[int, ...], tuple[int, ...], float], ...],
) -> tuple[list[float], list[float], list[float]]:
    """The gradient in relative steps, Newton's step, and the factors of the multiplicative one."""
    k, total = len(p), sum(n for _, _, n in columns)
    gain, loss = [0.0] * k, [0.0] * k
    curve = [[total] * k for _ in range(k)]  # the whole of p is free: this fixes it
    for share, (plus, minus, n) in zip(r, columns):
        a, b = sum(p[i] for i in plus), sum(p[i] for i in minus)
        for classes, part in ((plus, n * share / a), (minus, n * (1.0 - share) / b)):
            size = a if classes is plus else b
            for i in classes:
                gain[i] += part
                for j in classes:
                    curve[i][j] += part / size
        for i in plus + minus:
            loss[i] += n / (a + b)
            for j in plus + minus:
                curve[i][j] -= n / (a + b) ** 2
    v = [p[i] * (loss[i] - gain[i]) for i in range(k)]
    curve = [[curve[i][j] * p[i] * p[j] for j in range(k)] for i in range(k)]
    for i in range(k):
        curve[i][i] += max(v[i], 0.0) + 1e-14 * total * (p[i] * p[i] + 1e-30)
    u = _solved(_factored(curve), [-value for value in v])
    return v, u, [g / own if own > 1e-60 else 1.0 for g, own in zip(gain, loss)]


def _divergence(
    p: list[float],
    r: list[float],
    columns: tuple[tuple[tuple[int, ...], tuple[int, ...], float], ...],
) -> float:
    """What coupling minimises, up to a constant."""
    total = 0.0
    for share, (plus, minus, n) in zip(r, columns):
        a, b = sum(p[i] for i in plus), sum(p[i] for i in minus)
        total += n * (share * math.log((a + b) / a) + (1.0 - share) * math.log((a + b) / b))
    return total


def _moved(p: list[float], change: list[float]) -> list[float]:
    """p times the change, of sum 1, none below 1e-60."""
    new = [value * factor for value, factor in zip(p, change)]
    whole = sum(new)
    return [max(value / whole, 1e-60) for value in new]


def _feature_row(
    features: dict[object, object] | list[object],
    columns: tuple[tuple[object, dict[object, float] | None], ...],
) -> list[float]:
    """The columns of a row as numbers and codes of categories; NaN for missing and new ones."""
    row = []
    for name, codes in columns:
        try:
            value = features[name]  # type: ignore[call-overload]
        except (KeyError, IndexError):
            raise ValueError(f"features must have {name!r}, but it is missing") from None
        if value is None or (isinstance(value, float) and math.isnan(value)):
            row.append(math.nan)
        elif codes is not None:
            words = {isinstance(category, str) for category in codes}
            if words == {not isinstance(value, str)}:
                kind = "text" if True in words else "a number or a truth value"
                raise ValueError(f"{name!r} must be {kind} or None, but {value!r} came")
            row.append(codes.get(value, math.nan))
        elif isinstance(value, (str, bytes)) or not math.isfinite(value):  # type: ignore[arg-type]
            raise ValueError(f"{name!r} must be a finite number or None, but {value!r} came")
        else:
            row.append(float(value))  # type: ignore[arg-type]
    return row


def _sum_of_leaves(
    row: list[float],
    first: int,
    last: int,
    column: tuple[int, ...],
    threshold: tuple[float, ...],
    missing_left: tuple[bool, ...],
    subset: tuple[int, ...],
    left: tuple[int, ...],
    right: tuple[int, ...],
    leaves: tuple[float, ...],
    roots: tuple[int, ...],
    sets: tuple[frozenset[float], ...],
) -> float:
    """The sum of what the trees from first to last (exclusive) give to a row."""
    total = 0.0
    for tree in range(first, last):
        node = roots[tree]
        while node >= 0:
            x = row[column[node]]
            if subset[node] >= 0:
                low = x in sets[subset[node]]
            else:
                low = missing_left[node] if math.isnan(x) else x <= threshold[node]
            node = left[node] if low else right[node]
        total += leaves[-1 - node]
    return total
