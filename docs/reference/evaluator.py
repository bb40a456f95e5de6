"""Evaluates calibrator files in plain Python, one score or one row at a time.

    document = load("calibrator.json")
    probability = calibrate(document, 0.7)

The formulas are those of format.md. Only what is needed to give right numbers is checked.
"""

import bisect
import json
import math

VERSIONS = {"logistic": 2, "segmented": 4, "coded": 2}  # of all other kinds: 1


def load(path):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if document.get("format") != "calibrant" or document["version"] not in (1, 2):
        raise ValueError("not a calibrator, or a newer one")
    check(document["map"])
    return document


def check(value):
    """Refuse what this evaluator does not know, however deep it lies."""
    for item in value if isinstance(value, list) else []:
        check(item)
    if not isinstance(value, dict):
        return
    kind = value.get("kind")
    if kind not in {**ONE, **ROW} or not 1 <= value["version"] <= VERSIONS.get(kind, 1):
        raise ValueError(f"unknown or newer map: {kind!r}")
    for item in value.values():
        check(item)


def clip(v, low, high):
    return min(max(v, low), high)


def sigmoid(f):
    return 1.0 / (1.0 + math.exp(-f)) if f >= 0 else math.exp(f) / (1.0 + math.exp(f))


def inside(p):
    return clip(p, 5e-324, 1.0 - 2.0**-53)


def logit(p):
    return math.log(inside(p)) - math.log1p(-inside(p))


def softplus(f):
    return max(f, 0.0) + math.log1p(math.exp(-abs(f)))


# --- maps of one score


def piecewise(m, s):
    t = logit(s) if m.get("input", "score") == "logit" else s
    v = line(m["x"], m["left"], m["right"], t)
    return sigmoid(v) if m.get("output", "probability") == "logit" else v


def line(x, left, right, t):
    i = bisect.bisect_right(x, t)
    if i == 0:
        return left[0]
    if i == len(x):
        return right[-1]
    a, b, low, high = x[i - 1], x[i], right[i - 1], left[i]
    if b - a == math.inf:
        t, a, b = t / 2, a / 2, b / 2
    v = low + (t - a) / (b - a) * (high - low)
    return clip(v, min(low, high), max(low, high))


FEATURES = {
    "x": lambda s: s,
    "z": logit,
    "z2": lambda s: logit(s) ** 2,
    "ln_p": lambda s: math.log(inside(s)),
    "neg_ln_1mp": lambda s: -math.log1p(-inside(s)),
    "ln_sigmoid": lambda s: -softplus(-s),
    "softplus": softplus,
}


def logistic(m, s):
    if m.get("clip") is not None:
        s = clip(s, *m["clip"])
    total = m["intercept"]
    for name, c in m["terms"]:
        if c != 0:
            feature = FEATURES[name]
            total += c * feature(s)
    return sigmoid(total)


def mixture(m, s):
    total = 0.0
    for weight, member in zip(m["weights"], m["members"], strict=True):
        total += weight * one(member, s)
    return clip(total, 0.0, 1.0)


def chain(m, s):
    for step in m["steps"]:
        s = one(step, s)
    return s


def segmented(m, s, segment=None):
    p = one(m["default"], s)
    parts = [segment]
    if isinstance(segment, (list, tuple)):  # several columns, from coarse to fine
        parts = [list(segment[: n + 1]) for n in range(len(segment))]
    for part in parts:
        if part in m["keys"]:
            i = m["keys"].index(part)
            own = one(m["maps"][i], p if m.get("input") == "default" else s)
            w = 1.0 if m.get("weights") is None else m["weights"][i]
            p = own if w == 1.0 else w * own + (1.0 - w) * p
    return p


ONE = {
    "identity": lambda m, s: clip(s, 0.0, 1.0),
    "piecewise": piecewise,
    "logistic": logistic,
    "mixture": mixture,
    "chain": chain,
    "interval": lambda m, s: one(m["point"], s),
    "segmented": segmented,
}


def one(m, s):
    evaluate = ONE[m["kind"]]
    return evaluate(m, s)


# --- maps of a row


def log_softmax(z):
    below = [v - max(z) for v in z]
    total = math.log(sum(math.exp(v) for v in below))
    return [v - total for v in below]


def shares(x):
    return [v / sum(x) for v in x] if sum(x) > 0 else x


def powers(row, factor):
    x = [max(s, 0.0) for s in row]
    return shares([(v / (max(x) or 1.0)) ** factor for v in x])


def softmax(m, row):
    z = [clip(s, -1e100, 1e100) for s in row]
    if m.get("input") == "probability":
        z = [math.log(clip(s, m.get("floor", 5e-324), 1.0)) for s in row]
    if m.get("inner") is not None:
        z = log_softmax([m["inner"] * v for v in z])
    w = m["matrix"]
    if not isinstance(w, list):
        w = [w] * len(z)
    if isinstance(w[0], list):
        e = [sum(a * v for a, v in zip(own, z, strict=True)) for own in w]
    else:
        e = [a * v for a, v in zip(w, z, strict=True)]
    return [math.exp(v) for v in log_softmax([a + b for a, b in zip(e, m["bias"], strict=True)])]


def coded(m, row):
    if m.get("combine", "normalize") != "normalize":
        raise NotImplementedError("this combiner needs a solver")
    r = [one(own, s) for own, s in zip(m["maps"], row, strict=True)]
    r = [r[code.index(1)] for code in m["code"]]
    return shares(r) if sum(r) > 0 else [1.0 / len(r)] * len(r)


def vector_mixture(m, row):
    x, factor = list(row), m.get("factor", 1.0)
    if m.get("input") == "logit":
        z = [factor * clip(s, -1e100, 1e100) for s in row]
        x = [math.exp(v) for v in log_softmax(z)]
    elif m.get("input") == "probability" and factor != 1.0:
        x = powers(row, factor)
    if m.get("input", "score") != "score":
        x = shares([clip(v, m.get("floor", 0.0), 1.0) for v in x])
    rows = [several(member, x) for member in m["members"]]
    return [
        sum(w * p for w, p in zip(m["weights"], column, strict=True))
        for column in zip(*rows, strict=True)
    ]


def top_label(m, row):
    factor = m.get("factor", 1.0)
    if m.get("input", "logit") == "logit":
        z = [factor * clip(s, -1e100, 1e100) for s in row]
        p = [math.exp(v) for v in log_softmax(z)]
    elif factor != 1.0:
        p = powers(row, factor)
    else:
        p = [clip(s, 0.0, 1.0) for s in row]
    c, k = max(p), len(p)
    others = [v for v in p if v < c]
    tied, rest, second = k - len(others), sum(others), max(others, default=0.0)
    equal = second / (rest + tied * second) if rest > 0 else 1.0 / k
    q = min(max(one(m["map"], c), 1.000001 * equal), 1.0 / tied)
    left = max(1.0 - tied * q, 0.0)
    even = left / max(k - tied, 1)
    return [q if v == c else v / rest * left if rest > 0 else even for v in p]


ROW = {
    "softmax": softmax,
    "coded": coded,
    "columns": lambda m, row: [one(own, s) for own, s in zip(m["maps"], row, strict=True)],
    "vector_mixture": vector_mixture,
    "top_label": top_label,
}


def several(m, row):
    evaluate = ROW[m["kind"]]
    return evaluate(m, row)


# --- what a user calls


def calibrate(document, score, segment=None, on_range="error"):
    """The probability of pos_label for one score, or of all classes for a row of scores."""
    m = document["map"]
    known = document.get("score_range")
    if known is not None and known["kind"] == "probability" and on_range != "allow":
        row = score if m["kind"] in ROW else [score]
        moved = [clip(s, 0.0, 1.0) for s in row]
        if moved != list(row) and on_range == "error":
            raise ValueError("scores must be probabilities, as those of the fit")
        score = moved if m["kind"] in ROW else moved[0]
    if m["kind"] in ROW:
        return several(m, score)
    return segmented(m, score, segment) if m["kind"] == "segmented" else one(m, score)
