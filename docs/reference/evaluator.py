"""Evaluates calibrator files in plain Python, one score or one row at a time.

    document = load("calibrator.json")
    probability = calibrate(document, 0.7)

The formulas are those of format.md, and so is what is refused: with a ValueError that says why.
"""

import bisect
import itertools
import json
import math

LARGEST = 1.7976931348623157e308  # the largest double
DEEPEST = 20
VERSIONS = {"logistic": 2, "segmented": 4, "coded": 2}  # of all other kinds: 1


def load(path):
    with open(path, encoding="utf-8") as file:
        return read(file.read())


def read(text):
    """The document in the text of a file, with all numbers of maps as doubles."""
    try:
        document = json.loads(text, object_pairs_hook=without_twins, parse_constant=no_number)
        if "\\ud" in text.lower():  # half of a surrogate pair is no character
            json.dumps(document, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    check_document(document)
    return document


def need(fine, why):
    if not fine:
        raise ValueError(why)


def without_twins(pairs):
    need(len(dict(pairs)) == len(pairs), "a name occurs twice in one object")
    return dict(pairs)


def no_number(word):
    raise ValueError(f"numbers must be finite, but {word} came")


# --- what is refused


def is_number(v, largest=LARGEST):
    return type(v) in (int, float) and -largest <= v <= largest


def is_list(test, least=1):
    return lambda v: isinstance(v, list) and len(v) >= least and all(map(test, v))


def is_word(*words):
    return lambda v: isinstance(v, str) and v in words


def or_null(test):
    return lambda v: v is None or test(v)


def is_share(v):
    return is_number(v) and 0 <= v <= 1


def is_factor(v):
    return is_number(v, 1e100)


def is_power(v):
    return is_factor(v) and v > 0


def is_level(v):
    return is_share(v) and 0 < v < 1


def is_term(v):
    pair = isinstance(v, list) and len(v) == 2
    return pair and is_word(*FEATURES)(v[0]) and is_number(v[1], 1e290)


def is_interval(v):
    return is_list(is_share, 2)(v) and len(v) == 2 and v[0] < v[1]


def is_matrix(v):
    return is_factor(v) or is_list(is_factor)(v) or is_list(is_list(is_factor))(v)


def is_whole(v):
    return type(v) is int and -(2**63) <= v < 2**64


def is_key(v):
    return isinstance(v, str) or is_whole(v)


def is_keys(v):
    return is_list(is_key, 0)(v) or is_list(is_list(is_key), 0)(v)


def is_one(v):
    return isinstance(v, dict) and is_word(*ONE)(v.get("kind"))


def is_row(v):
    return isinstance(v, dict) and is_word(*ROW)(v.get("kind")) and v["kind"] != "columns"


def is_code(v):
    return is_list(is_list(lambda entry: is_number(entry) and entry in (-1, 0, 1)), 2)(v)


INPUT = is_word("logit", "probability")
COMBINERS = ("normalize", "least_squares", "coupling", "pairwise")
# the fields of each kind that must come, and what they must be
FIELDS = {
    "identity": {},
    "piecewise": {"x": is_list(is_number), "left": is_list(is_number), "right": is_list(is_number)},
    "logistic": {"intercept": lambda v: is_number(v, 1e290), "terms": is_list(is_term, 0)},
    "mixture": {"weights": is_list(is_number), "members": is_list(is_one)},
    "chain": {"steps": is_list(is_one)},
    "interval": {"lower": is_one, "upper": is_one, "point": is_one},
    "segmented": {"default": is_one, "keys": is_keys, "maps": is_list(is_one, 0)},
    "softmax": {"matrix": is_matrix, "bias": is_list(is_factor, 2)},
    "coded": {"code": is_code, "maps": is_list(is_one)},
    "columns": {"maps": is_list(is_one)},
    "vector_mixture": {"weights": is_list(is_number), "members": is_list(is_row)},
    "top_label": {"map": is_one, "columns": lambda v: is_whole(v) and v >= 2},
}
# those that need not come
OPTIONAL = {
    "piecewise": {"input": is_word("score", "logit"), "output": INPUT},
    "logistic": {"clip": or_null(is_interval)},
    "interval": {"level": or_null(is_level)},
    "segmented": {
        "weights": or_null(is_list(is_share, 0)),
        "input": is_word("score", "default"),
        "default_keys": is_keys,
    },
    "softmax": {
        "input": INPUT,
        "floor": lambda v: is_share(v) and v > 0,
        "inner": or_null(is_factor),
    },
    "coded": {"combine": is_word(*COMBINERS), "weights": or_null(is_list(is_number))},
    "vector_mixture": {
        "input": is_word("score", "logit", "probability"),
        "floor": is_share,
        "factor": is_power,
    },
    "top_label": {"input": INPUT, "factor": is_power},
}


def check_document(d):
    fine = isinstance(d, dict) and d.get("format") == "calibrant"
    need(fine, "not a calibrator, or a newer one")
    need(is_version(d.get("version"), 2), "no version, or a newer one")
    need(isinstance(d.get("method"), str), "its method must be text")
    for name in ("params", "provenance"):
        need(isinstance(d.get(name), dict), f"its {name} must be an object")
        check_facts(d[name])
    m = d.get("map")
    check_map(m)
    need("arrays" not in d, "it names arrays, but its map has none")
    known = d.get("score_range")
    if known is not None:
        fine = isinstance(known, dict) and set(known) == {"kind", "low", "high"}
        need(fine and is_word("probability", "number")(known["kind"]), "no score_range")
        need(is_number(known["low"]) and is_number(known["high"]), "no score_range")
        need(float(known["low"]) <= float(known["high"]), "its score_range is empty")
        inside = known["kind"] == "number" or (known["low"] >= 0 and known["high"] <= 1)
        need(inside, "its score_range leaves [0, 1]")
    labels, positive = d.get("classes"), d.get("pos_label")
    need(is_list(is_label)(labels), "its classes must be labels")
    told = {(type(label), label) for label in labels}
    need(len(told) == len(labels), "a class occurs twice")
    if m["kind"] in ROW:
        need(len(labels) == width(m)[1] and positive is None, "its classes do not fit its map")
    else:
        fine = len(labels) == 2 and is_label(positive) and (type(positive), positive) in told
        need(fine, "its classes must be two, with pos_label among them")


def is_version(v, newest):
    return type(v) is int and 1 <= v <= newest


def is_label(v):
    return isinstance(v, (str, bool)) or is_whole(v) or (type(v) is float and is_number(v))


def check_facts(value, depth=0):
    need(depth <= DEEPEST, f"facts must not nest deeper than {DEEPEST}")
    need(type(value) is not int or abs(value) < 2**1023, "a number of facts is too large")
    inner = value.values() if isinstance(value, dict) else value
    for item in inner if isinstance(value, (dict, list)) else ():
        check_facts(item, depth + 1)


def check_map(m, depth=0):
    need(depth <= DEEPEST, f"maps must not nest deeper than {DEEPEST}")
    need(isinstance(m, dict) and is_word(*FIELDS)(m.get("kind")), "a map of an unknown kind")
    kind = m["kind"]
    need(is_version(m.get("version"), VERSIONS.get(kind, 1)), f"unknown or newer map: {kind}")
    needed, more = FIELDS[kind], OPTIONAL.get(kind, {})
    fields = set(m) - {"kind", "version"}
    need(set(needed) <= fields <= {*needed, *more}, f"{kind} must have its fields, no others")
    for name in sorted(fields):
        need(
            (needed | more)[name](m[name]),
            f"{name} of {kind} is not what it must be (is it newer?)",
        )
        if name not in ("keys", "default_keys", "columns"):
            m[name] = doubles(m[name])
    for value in m.values():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                check_map(inner, depth + 1)
    if kind in TOGETHER:
        TOGETHER[kind](m)


def doubles(v):
    if isinstance(v, list):
        return [doubles(item) for item in v]
    return float(v) if type(v) is int else v


def need_shares(m):
    w = m["weights"]
    need(len(w) == len(m["members"]), "a mixture needs one weight per member")
    need(min(w) >= 0 and max(w) <= 2 and abs(sum(w) - 1) <= 1e-9, "weights must sum to 1")


def check_piecewise(m):
    x, left, right = m["x"], m["left"], m["right"]
    need(len(x) == len(left) == len(right), "each knot must have a left and a right value")
    need(all(a < b for a, b in itertools.pairwise(x)), "knots must strictly ascend")
    low, high = (-1e300, 1e300) if m.get("output") == "logit" else (0, 1)
    need(all(low <= v <= high for v in left + right), "values of a line that it must not have")


def check_logistic(m):
    names = [name for name, _ in m["terms"]]
    need(len(set(names)) == len(names), "a feature occurs twice")
    need("x" not in names or not {"ln_sigmoid", "softplus"} & set(names), "x beside its parts")


def check_segmented(m):
    need(len(m["keys"]) == len(m["maps"]), "a segmented map needs one map per key")
    if m.get("weights") is not None:
        need(len(m["keys"]) == len(m["weights"]), "a segmented map needs one weight per key")
    seen = [tuple(k) if isinstance(k, list) else k for k in m["keys"] + m.get("default_keys", [])]
    lists = [k for k in seen if isinstance(k, tuple)]
    several = len(lists) == len(seen) and any(len(k) > 1 for k in lists)
    need(not lists or several, "all keys must be lists, some of two values or more, or none")
    need(len(set(seen)) == len(seen), "a key occurs twice")


def check_softmax(m):
    k, w = len(m["bias"]), m["matrix"]
    for part in (w, *w) if isinstance(w, list) else ():
        need(not isinstance(part, list) or len(part) == k, "a matrix of another size")


def check_coded(m):
    code, k, columns = m["code"], len(m["code"]), len(m["maps"])
    weights, combine = m.get("weights"), m.get("combine", "normalize")
    need(all(len(row) == columns for row in code), "a code must have one column per map")
    weights = [1.0] * columns if weights is None else weights
    need(len(weights) == columns and min(weights) >= 0 < max(weights), "no weights of columns")
    by_column = list(zip(*code, strict=True))
    need(all({1, -1} <= set(c) for c in by_column), "a column must hold both 1 and -1")
    if combine == "normalize":
        alone = [-1.0] * (k - 1) + [1.0]
        fine = k == columns and all(sorted(line) == alone for line in [*by_column, *code])
        need(fine, "normalize needs one class against all others")
        return
    need(all(any(row) for row in code), "a class is in no column")
    if combine == "pairwise":
        pairs = [frozenset(i for i in range(k) if c[i]) for c in by_column]
        every = all(len(pair) == 2 for pair in pairs) and len(set(pairs)) == k * (k - 1) // 2
        need(every, "pairwise needs all pairs of classes")
    used = [c for c, w in zip(by_column, weights, strict=True) if w / max(weights) > 1e-100]
    parts = [{i for i in range(k) if c[i]} for c in used]
    reached, before = set(parts[0]), set()
    while reached != before:
        before = reached
        reached = reached.union(*(part for part in parts if part & reached))
    need(reached == set().union(*parts), "columns of weight must link all classes that they know")


def check_vector_mixture(m):
    need_shares(m)
    need(len({width(member) for member in m["members"]}) == 1, "members must be of one size")
    need(m.get("floor", 0.0) <= 1.0 / width(m)[0], "the floor must be at most 1/k")


TOGETHER = {
    "piecewise": check_piecewise,
    "logistic": check_logistic,
    "mixture": need_shares,
    "segmented": check_segmented,
    "softmax": check_softmax,
    "coded": check_coded,
    "vector_mixture": check_vector_mixture,
}


def width(m):
    """How many scores a row has, and how many probabilities it gets."""
    if m["kind"] == "vector_mixture":
        return width(m["members"][0])
    if m["kind"] == "coded":
        return len(m["maps"]), len(m["code"])
    k = m.get("columns") or len(m.get("bias") or m["maps"])
    return k, k


# --- formulas


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


def takes_probabilities(m):
    """Whether a map says by itself that its scores lie in [0, 1]."""
    kind = m["kind"]
    if kind == "piecewise":
        return m.get("input") == "logit"
    if kind == "logistic":
        of_p = any(c != 0 and name in ("z", "z2", "ln_p", "neg_ln_1mp") for name, c in m["terms"])
        return of_p or m.get("clip") is not None
    if kind == "mixture":
        pairs = zip(m["weights"], m["members"], strict=True)
        return any(takes_probabilities(member) for weight, member in pairs if weight > 0)
    if kind in ("chain", "interval"):
        return takes_probabilities(m["point"] if kind == "interval" else m["steps"][0])
    if kind == "segmented":
        own = m["maps"] if m.get("input") != "default" else []
        return any(map(takes_probabilities, [m["default"], *own]))
    if kind == "identity" or reads(m) != "score":
        return kind == "identity" or reads(m) == "probability"
    return any(map(takes_probabilities, m["maps"] if "maps" in m else m["members"]))


def reads(m):
    """What the numbers of a row are, where they are one distribution."""
    given = m.get("input", "logit" if m["kind"] in ("softmax", "top_label") else "score")
    if m["kind"] == "vector_mixture" and given == "score":
        same = set(map(reads, m["members"]))
        return same.pop() if len(same) == 1 else "score"
    return given


def calibrate(document, score, segment=None, on_range="error"):
    """The probability of pos_label for one score, or of all classes for a row of scores."""
    m = document["map"]
    known, row = document.get("score_range"), m["kind"] in ROW
    of_p = takes_probabilities(m) if known is None else known["kind"] == "probability"
    if of_p and on_range != "allow":
        given = list(score) if row else [score]
        moved = [clip(s, 0.0, 1.0) for s in given]
        if moved != given and on_range == "error":
            raise ValueError("scores must be probabilities, as those of the fit")
        score = moved if row else moved[0]
    if row:
        return several(m, score)
    return segmented(m, score, segment) if m["kind"] == "segmented" else one(m, score)
