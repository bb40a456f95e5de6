"""The format as published: the schema, the page and its evaluator say what our reader does."""

from __future__ import annotations

import copy
import json
import re
import runpy
import warnings
from dataclasses import MISSING, fields, replace

import jsonschema
import numpy as np
import pytest

import calibrant as cal
from calibrant.data.scale import ScoreRange
from calibrant.errors import CalibrationWarning, InputError
from calibrant.fitting.files import to_json
from calibrant.fitting.fitted import Fitted
from calibrant.maps import (
    Chain,
    Coded,
    Columns,
    Identity,
    Interval,
    Logistic,
    Mixture,
    Piecewise,
    Segmented,
    Softmax,
    VectorMap,
    VectorMixture,
    map_from_dict,
)
from calibrant.rules.base import OF_METHODS, known_kinds
from cases import CASES
from saved import fixed_trees
from saved import saved as everything
from subjects import (
    ENDS,
    JUMP,
    ROWS,
    SEGMENTED,
    SHAPES,
    VECTORS,
    around,
    fitted,
    fitted_segments,
    fitted_vector,
    vector_rows,
)

#: how far `exp` and `log` of other libraries may move a formula, and a steep line of a logarithm
TOL = 2e-14


@pytest.fixture(scope="module")
def schema(root):
    return json.loads(
        (root / "docs" / "reference" / "calibrator.schema.json").read_text(encoding="utf-8")
    )


@pytest.fixture(scope="module")
def validator(schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "reference" / "format.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def evaluator(root):
    """The names of the evaluator that the page links to."""
    return runpy.run_path(str(root / "docs" / "reference" / "evaluator.py"))


def labelled(map_):
    """A calibrator of a hand-made map."""
    if isinstance(map_, VectorMap):
        return Fitted(map_, tuple("abcdef"[: map_.n_classes]), None)
    return Fitted(map_, ("no", "yes"), "yes")


def saved(calibrator, folder):
    cal.save(calibrator, folder / "c.json")
    return json.loads((folder / "c.json").read_text(encoding="utf-8"))


# --- the schema -----------------------------------------------------------------------------------


def test_the_schema_has_every_kind_with_its_fields(schema):
    defs = schema["$defs"]
    assert set(known_kinds()) <= set(defs)
    for name, kind in known_kinds().items():
        known = {field.name: field.default for field in fields(kind)}
        entry = defs[name]
        assert set(entry["properties"]) == {"kind", "version", *known}
        needed = {field for field, default in known.items() if default is MISSING}
        assert set(entry["required"]) == {"kind", "version", *needed}
        assert entry["additionalProperties"] is False
        assert entry["properties"]["kind"] == {"const": name}
        assert entry["properties"]["version"] == {
            "type": "integer",
            "minimum": 1,
            "maximum": kind.version,
        }
        for field in set(known) - needed:
            default = json.loads(json.dumps(known[field]))
            assert entry["properties"][field]["default"] == default, (name, field)


def test_the_schema_knows_who_takes_rows(schema):
    groups = {
        group: {entry["$ref"].rsplit("/", 1)[1] for entry in schema["$defs"][group]["oneOf"]}
        for group in ("map_of_one_score", "map_of_a_row", "rule_of_more")
    }
    assert groups.pop("rule_of_more") == set(OF_METHODS)
    rows = {name for name, kind in known_kinds().items() if issubclass(kind, VectorMap)}
    (told,) = re.findall(r"enum': \[(.*?)\]", str(schema["if"]))
    assert set(told.replace("'", "").split(", ")) == rows
    assert groups == {"map_of_one_score": set(known_kinds()) - rows, "map_of_a_row": rows}


@pytest.mark.parametrize("margins", [False, True], ids=["probabilities", "margins"])
@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_what_save_writes_is_valid(name, margins, validator, tmp_path):
    validator.validate(saved(fitted(name, margins), tmp_path))


@pytest.mark.parametrize("name", VECTORS)
def test_calibrators_of_rows_are_valid(name, validator, tmp_path):
    validator.validate(saved(fitted_vector(name), tmp_path))


@pytest.mark.parametrize("name", ["acp", "similarity", "similarity-classes", "hand-trees"])
def test_rules_that_need_more_are_valid_and_refused_by_the_evaluator(
    name, validator, evaluator, tmp_path
):
    document = saved(everything()[name], tmp_path)
    validator.validate(document)
    kind = everything()[name].rule
    known = schema_fields(validator.schema, kind.kind)
    assert set(document["map"]) == set(kind.to_dict()) == known
    with pytest.raises(ValueError, match="a map of an unknown kind"):
        evaluator["load"](tmp_path / "c.json")


def schema_fields(schema, kind):
    entry = schema["$defs"][kind]
    assert set(entry["required"]) == set(entry["properties"])
    return set(entry["properties"])


def test_arrays_that_no_map_has_are_refused_by_both(evaluator, tmp_path):
    document = saved(cal.Platt().fit([0.1, 0.9], [0, 1]), tmp_path)
    text = json.dumps(document | {"arrays": {"file": "c.npz", "sha256": ""}})
    assert read_by_both(text, evaluator, tmp_path / "c.json") == (None, None)


@pytest.mark.parametrize("own", [None, cal.Isotonic()], ids=repr)
def test_calibrators_of_segments_are_valid(own, validator, tmp_path):
    validator.validate(saved(fitted_segments(own), tmp_path))


def test_hand_made_maps_are_valid(validator, tmp_path):
    for map_ in (*SHAPES.values(), *SEGMENTED.values(), *ROWS.values()):
        validator.validate(saved(labelled(map_), tmp_path))


# --- changed in one place -------------------------------------------------------------------------

SAME = Identity()
SMALL = {
    "identity": SAME,
    "probabilities": Piecewise.linear([0.2, 0.6], [0.1, 0.9]),
    "logits": Piecewise.linear([-2.0, 1.0], [-3.0, 2.0], "logit", "logit"),
    "clipped": Logistic(0.1, (("ln_p", 0.7),), clip=(0.01, 0.98)),
    "margins": Logistic(0.1, (("ln_sigmoid", 0.7), ("softplus", 0.2))),
    "two terms": Logistic(0.0, (("x", 1.0), ("z", 2.0))),
    "mixture": Mixture([0.5, 0.5], (SAME, SAME)),
    "chain": Chain((SAME, SAME)),
    "interval": Interval(SAME, SAME, SAME, 0.9),
    "segments": Segmented(SAME, (1, "1"), (SAME, SAME), [0.1, 0.2], default_keys=("a", 2)),
    "matrix": Softmax([[1.0, 0.2], [0.0, 0.9]], [0.1, -0.2], "probability", 1e-9, 0.5),
    "temperature": Softmax(0.7, [0.1, -0.2]),
    "coupling": Coded([[1, 1], [-1, 0], [0, -1]], (SAME, SAME), "coupling", [1.0, 2.0]),
    "segments of two columns": Segmented(
        SAME, (("a",), ("a", 1)), (SAME, SAME), [0.1, 0.2], default_keys=(("b", 2),)
    ),
    "one against all": Coded.one_vs_rest((SAME, SAME)),
    "columns": Columns((SAME, SAME)),
    "rows": VectorMixture([1.0], (Softmax(1.0, [0.0, 0.0]),), "logit", 0.01, 2.0),
}
ONE = {"kind": "identity", "version": 1}
VALUES = [None, True, 1, -1, 0.5, 1e295, "x", [], [0.5], ["a", "b"], [["x", 1.0, 2.0]], {}, ONE]
VALUES += [{"kind": "columns", "version": 1, "maps": [ONE]}]
#: what a schema cannot say: why our reader refuses what it lets pass
UNSAYABLE = (
    "ascending|one weight per|left and right value for each|non-negative and sum to 1"
    "|other segments than its keys|all tuples of which some"
    r"|'x', 1\.0, 2\.0\) came"  # 1.0 is an integer to a schema
    "|one map per key|cannot go with|cannot have a matrix|must hold both 1 and|all pairs"
    "|one-against-all code|must be an array of numbers|interval inside|a whole number from 1"
    "|floor must lie in|same columns|pos_label among them|different labels|gives . probabilities"
    "|must not be above the upper"
    "|numbers of at least 0, one per column|link all classes|dimension|classes must be|no column"
)


def places(value, path=()):
    """The paths of all members of a document; of a list only the first and the last."""
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list):
        members = sorted({0: value[0], len(value) - 1: value[-1]}.items()) if value else []
    else:
        return
    for key, item in members:
        yield (*path, key)
        yield from places(item, (*path, key))


def changed(document, more=()):
    """Documents that differ in one place from this one."""
    for path in places(document):
        if path[0] in ("params", "provenance") and len(path) > 1:
            continue
        for value in ("DELETE", "DOUBLE", *VALUES, *more):
            other = copy.deepcopy(document)
            holder = other
            for key in path[:-1]:
                holder = holder[key]
            if value == "DELETE":
                del holder[path[-1]]
            elif value == "DOUBLE":
                twin = copy.deepcopy(holder[path[-1]])
                holder.append(twin) if isinstance(holder, list) else holder.update(other=twin)
            else:
                holder[path[-1]] = value
            yield path, value, other


def refusal(document):
    """Why our reader refuses a document, or None."""
    try:
        Fitted.from_dict(document)
    except InputError as wrong:
        return str(wrong)
    return None


@pytest.mark.full
@pytest.mark.parametrize("name", SMALL)
def test_schema_and_reader_refuse_the_same(name, validator):
    document = json.loads(to_json(labelled(SMALL[name])))
    counts = {True: 0, False: 0}
    for path, value, other in changed(document):
        valid = validator.is_valid(other)
        counts[valid] += 1
        why = refusal(other)
        if why is None:
            assert valid, (path, value)
        elif valid:
            assert re.search(UNSAYABLE, why), (path, value, why)
    assert min(counts.values()) > 10


def test_other_facts_do_not_matter(validator):
    document = json.loads(to_json(labelled(JUMP)))
    document |= {"later": [1], "provenance": {"a": {"b": [1, None, "x"]}}, "params": {"c": 1.5}}
    validator.validate(document)
    assert Fitted.from_dict(document).calibrate([0.4]).tolist() == [0.4]


# --- the reader and the evaluator of the page --------------------------------------------------


def inside(map_, kind, levels):
    """A map inside so many others of one kind."""
    made = {
        "chain": lambda one: Chain((one,)),
        "mixture": lambda one: Mixture([1.0], (one,)),
        "interval": lambda one: Interval(SAME, SAME, one),
        "segmented": lambda one: Segmented(SAME, ("a",), (one,)),
        "vector_mixture": lambda one: VectorMixture([1.0], (one,)),
    }
    for _ in range(levels):
        map_ = made[kind](map_)
    return map_


def text_with(old, new, map_=JUMP):
    """The file of a map, with one part of its text replaced."""
    text = to_json(labelled(map_))
    assert old in text
    return text.replace(old, new)


def nested_facts(levels):
    facts = {"a": 1}
    for _ in range(levels - 1):
        facts = {"a": facts}
    return json.dumps(facts)


Z = Logistic(0.1, (("x", 1.0), ("z2", 3.0)))
POWERS = Softmax(0.7, [0.1, -0.2], "probability", 1e-9)
PAIRS = [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]
#: files that every reader must take
VALID = {
    **{name: to_json(labelled(map_)) for name, map_ in SMALL.items()},
    **{f"shape: {name}": to_json(labelled(map_)) for name, map_ in SHAPES.items()},
    **{f"row: {name}": to_json(labelled(map_)) for name, map_ in ROWS.items()},
    **{
        f"20 deep: {kind}": to_json(labelled(inside(map_, kind, 20)))
        for kind, map_ in (
            ("chain", JUMP),
            ("mixture", Z),
            ("interval", SAME),
            ("segmented", JUMP),
            ("vector_mixture", POWERS),
        )
    },
    "a term of 0": text_with("3.0", "0", Z),
    "only terms of 0": to_json(labelled(Logistic(0.3, (("z", 0.0),)))),
    "clip of the score": to_json(labelled(Logistic(0.3, (("x", 2.0),), clip=(0.1, 0.8)))),
    "a member of weight 0": to_json(
        labelled(Mixture([1.0, 0.0], (JUMP, Logistic(0.0, (("z", 1.0),)))))
    ),
    "whole numbers": to_json(labelled(JUMP)).replace("0.9", "1").replace("1, 1", "1"),
    "whole numbers beyond 64 bits": text_with(
        "0.2", "-100000000000000000000", SMALL["probabilities"]
    ),
    "whole numbers that are no doubles": text_with(
        "0.6", "9007199254740993", SMALL["probabilities"]
    ),
    "far whole numbers": text_with("-2.0", str(-(10**308)), SMALL["logits"]).replace(
        "[" + str(-(10**308)) + ", 1.0]", f"[{-(10**308)}, {10**308}]"
    ),
    "later fields": text_with('"format"', '"later": [1e400, {"kind": 3}], "format"'),
    "facts 20 deep": text_with('"params": {}', f'"params": {nested_facts(20)}'),
    "facts that are infinite": text_with('"params": {}', '"params": {"a": 1e999, "b": [null]}'),
    "no optional field": json.dumps(
        {
            "format": "calibrant",
            "version": 1,
            "method": "",
            "params": {},
            "classes": [1, 1.0],
            "pos_label": 1.0,
            "provenance": {},
            "map": {"kind": "piecewise", "version": 1, "x": [0], "left": [0], "right": [1]},
        }
    ),
    "labels of four types": text_with('["no", "yes"]', "[true, 1]").replace('"yes"', "true"),
    "labels of 64 bits": text_with('["no", "yes"]', f"[{2**64 - 1}, 1.5]").replace('"yes"', "1.5"),
    "a pair of surrogates": text_with('"no"', r'"\ud83d\ude00"'),
    "an old segmented map": text_with('"version": 3', '"version": 1', SMALL["segments"]),
    "default keys alone": to_json(labelled(Segmented(JUMP, (), (), default_keys=(("a", 1),)))),
    "weights beside normalize": to_json(
        labelled(Coded([[1, -1], [-1, 1]], (SAME, SAME), weights=[0.0, 2.0]))
    ),
    "columns without weight": to_json(
        labelled(Coded(PAIRS, (SAME,) * 3, "least_squares", [1.0, 1e-101, 0.0]))
    ),
    "pairwise": to_json(labelled(Coded(PAIRS, (SAME,) * 3, "pairwise"))),
}
#: files that every reader must refuse
INVALID = {
    "a byte order mark": "\ufeff" + to_json(labelled(JUMP)),
    "a name twice": text_with('"method"', '"version": 2, "method"'),
    "a name twice in a map": text_with('"kind"', '"version": 1, "kind"'),
    "a name twice in facts": text_with('"params": {}', '"params": {"a": [{"b": 1, "b": 1}]}'),
    "no number": text_with("0.3", "NaN"),
    "infinite": text_with("0.3", "-Infinity"),
    "too large a number": text_with("0.3", "1e999"),
    "too large a whole number": text_with("0.3", str(10**309)),
    "half a surrogate pair": text_with('"no"', r'"\ud83d"'),
    "half a pair in facts": text_with('"params": {}', r'"params": {"\uDE00": 1}'),
    "facts 21 deep": text_with('"params": {}', f'"params": {nested_facts(21)}'),
    "too large a fact": text_with('"params": {}', f'"params": {{"a": {2**1023}}}'),
    "two documents": to_json(labelled(JUMP)) * 2,
    "no document": "",
    "a list": "[1]",
    "deep lists": "[" * 100_000,
    "a version with a point": text_with('"version": 2', '"version": 2.0'),
    "a map's version with a point": text_with('"version": 1', '"version": 1.0'),
    "the same label": text_with('["no", "yes"]', '["yes", "yes"]'),
    "another type of label": text_with('["no", "yes"]', "[true, 2]").replace('"yes"', "1"),
    "labels beyond 64 bits": text_with('["no", "yes"]', f"[{2**64}, 1.5]").replace('"yes"', "1.5"),
    "an infinite label": text_with('["no", "yes"]', "[1e999, 1.5]").replace('"yes"', "1.5"),
    "keys beyond 64 bits": text_with("[1, ", f"[{2**64}, ", SMALL["segments"]),
    "a key twice": text_with('"keys": [1, "1"]', '"keys": ["1", "1"]', SMALL["segments"]),
    "a known key as a default": text_with('["a", 2]', '["a", 1]', SMALL["segments"]),
    "lists of one": text_with('["a", 1]', '["c"]', SMALL["segments of two columns"]).replace(
        '["b", 2]', '["b"]'
    ),
    "a floor above 1/k": text_with("0.01", "0.51", SMALL["rows"]),
    "a factor too large": text_with('"factor": 2.0', '"factor": 1.1e100', SMALL["rows"]),
    "a coefficient too large": text_with("3.0", "1.1e290", Z),
    "an intercept too large": text_with("0.1", "-1.1e290", Z),
    "a logit too large": text_with("-3.0", "-1.1e300", SMALL["logits"]),
    "a bias too large": text_with("-0.2", "-1.1e100", SMALL["matrix"]),
    "weights of 1 up to 1e-8": text_with("0.5, 0.5", "0.5, 0.50000001", SMALL["mixture"]),
    "an empty clip": text_with("0.01", "0.98", SMALL["clipped"]),
    "knots that are one double": text_with(
        "[0.2, 0.6]", "[9007199254740992, 9007199254740993]", SMALL["probabilities"]
    ),
    "columns that do not link": text_with("1.0, 2.0", "1.0, 0.0", SMALL["coupling"]).replace(
        '"code": [', '"code": [[0, 1], '
    ),
    "a missing pair": text_with('"coupling"', '"pairwise"', SMALL["coupling"]),
}


def read_by_both(text, evaluator, file):
    """What our reader and the evaluator make of a text: a calibrator, or None where refused."""
    file.write_text(text, encoding="utf-8", newline="")
    try:
        ours = cal.load(file)
    except InputError:
        ours = None
    try:
        theirs = evaluator["load"](file)
    except ValueError:
        theirs = None
    return ours, theirs


def same_values(ours, theirs, evaluator):
    """Whether both refuse the same scores, and else give the same probabilities."""
    segments = ours.map.segments
    rows = isinstance(ours.map, VectorMap)
    for score in (0.0, 0.3, 0.55, 1.0, 1.5, -40.0, 1e308):
        given = [score] + [1.0 - score] * (ours.map.n_columns - 1) if rows else score
        for segment in [None] if segments is None else [*segments, "new"]:
            row, columns = segment, ours.map.n_segment_columns
            if columns > 1:  # a row has a value for each of them
                row = ((*segment, "x", "x") if segment != "new" else ("new",) * 3)[:columns]
            options = {} if segment is None else {"segments": [row]}
            try:
                with np.errstate(invalid="raise"), warnings.catch_warnings():
                    warnings.simplefilter("ignore", CalibrationWarning)  # of new segments
                    wanted = ours.predict_proba([given], **options)[0]
            except InputError as wrong:
                if re.search("the sum 1|Convert the column", str(wrong)):
                    continue  # looked at by our reader only
                wanted = None
            try:
                got = evaluator["calibrate"](theirs, given, row)
            except ValueError:
                got = None
            except NotImplementedError:  # the evaluator says that it has no solver
                return True
            if (wanted is None) != (got is None):
                return False
            if wanted is not None:
                p = wanted if rows else wanted[ours.positive_column]
                if np.abs(np.subtract(p, got)).max() > TOL:
                    return False
    return True


@pytest.mark.parametrize("name", VALID)
def test_reader_evaluator_and_schema_take_the_same_files(name, evaluator, validator, tmp_path):
    ours, theirs = read_by_both(VALID[name], evaluator, tmp_path / "c.json")
    assert ours is not None
    assert theirs is not None
    assert validator.is_valid(json.loads(VALID[name]))
    assert same_values(ours, theirs, evaluator)


@pytest.mark.parametrize("name", INVALID)
def test_reader_and_evaluator_refuse_the_same_files(name, evaluator, tmp_path):
    assert read_by_both(INVALID[name], evaluator, tmp_path / "c.json") == (None, None)


@pytest.mark.parametrize("name", SMALL)
def test_reader_and_evaluator_agree_on_changed_files(name, evaluator):
    """In each of some thousand files one place is changed: both refuse, or both give the same."""
    more = [0, 2, -0.5, 1e101, 1e301, 2**64, 10**309, "logit", [1, 1], [[0.5]], [None], [ONE, ONE]]
    taken = refused = 0
    for path, value, other in changed(json.loads(VALID[name]), more):
        text = json.dumps(other)
        try:
            ours = Fitted.from_dict(json.loads(text))
        except InputError:
            ours = None
        try:
            theirs = evaluator["read"](text)
        except ValueError:
            theirs = None
        assert (ours is None) == (theirs is None), (path, value)
        if ours is None:
            refused += 1
            continue
        taken += 1
        if path[0] in ("map", "score_range"):
            assert same_values(ours, theirs, evaluator), (path, value)
    assert taken > 10
    assert refused > 100


@pytest.mark.parametrize("kind", ["chain", "mixture", "interval", "vector_mixture"])
def test_what_is_saved_can_be_read_however_deep(kind, evaluator, tmp_path):
    start = POWERS if kind == "vector_mixture" else JUMP
    for levels in (10, 11, 19, 20):
        saved_one = labelled(inside(start, kind, levels))
        cal.save(saved_one, tmp_path / "c.json")
        assert cal.load(tmp_path / "c.json") == saved_one
    before = (tmp_path / "c.json").read_bytes()
    trees = Fitted(replace(fixed_trees(), start=inside(JUMP, "chain", 21)), ("a", "b"), "a")
    with pytest.raises(InputError, match="nest at most 20 deep"):
        cal.save(trees, tmp_path / "c.json")
    deeper = labelled(inside(start, kind, 21))
    with pytest.raises(InputError, match="nest at most 20 deep"):
        cal.save(deeper, tmp_path / "c.json")
    assert (tmp_path / "c.json").read_bytes() == before
    text = json.dumps({**json.loads(before), "map": deeper.map.to_dict()})
    assert read_by_both(text, evaluator, tmp_path / "c.json") == (None, None)


# --- the page -------------------------------------------------------------------------------------


def test_the_page_lists_every_kind_with_its_fields(page):
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (.*)\|$", page, flags=re.MULTILINE)
    assert [name for name, _, _ in rows] == list(dict.fromkeys(name for name, _, _ in rows))
    assert {name for name, _, _ in rows} == set(known_kinds())
    for name, version, told in rows:
        kind = known_kinds()[name]
        assert int(version) == kind.version
        found = dict(re.findall(r"`(\w+)`(?: = ([^,]+))?", told))
        wanted = {field.name: field.default for field in fields(kind)}
        assert list(found) == list(wanted), name
        for field, default in wanted.items():
            assert (found[field] == "") == (default is MISSING), (name, field)
            if default is not MISSING:
                assert json.loads(found[field]) == json.loads(json.dumps(default))


def test_the_example_is_a_calibrator(page, validator):
    (text,) = re.findall(r"```json\n(.*?)```", page, flags=re.DOTALL)
    validator.validate(json.loads(text))
    assert Fitted.from_dict(json.loads(text)).predict_proba([0.4]).round(6).tolist() == [[0.4, 0.6]]


def test_the_numbers_to_check_against(page, evaluator):
    rows = re.findall(r"^\| `(\{.*\})` \| (\S+) \| (\S+) \|$", page, flags=re.MULTILINE)
    assert len(rows) == 8
    for text, score, wanted in rows:
        description = json.loads(text)
        assert map_from_dict(description)([float(score)]).tolist() == [float(wanted)], text
        assert abs(evaluator["one"](description, float(score)) - float(wanted)) <= 2e-16


def compare(evaluator, calibrator, scores, folder):
    cal.save(calibrator, folder / "c.json")
    document = evaluator["load"](folder / "c.json")
    got = [evaluator["calibrate"](document, s, on_range="allow") for s in scores.tolist()]
    loaded = cal.load(folder / "c.json")
    rows = isinstance(loaded.map, VectorMap)
    wanted = loaded.map(scores) if rows else loaded.calibrate(scores, on_range="allow")
    assert np.abs(np.array(got) - wanted).max() <= TOL
    return got, wanted


@pytest.mark.parametrize("margins", [False, True], ids=["probabilities", "margins"])
@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_the_evaluator_gives_our_numbers(name, margins, evaluator, tmp_path):
    c = fitted(name, margins)
    rng = np.random.default_rng(1)
    scores = np.concatenate((rng.normal(0, 3, 40) if margins else rng.random(40), ENDS))
    plain = isinstance(c.map_, Piecewise) and c.map_.input == "score"
    if plain:  # no logarithm stands before the comparison
        scores = np.concatenate((scores, around(c.map_.x[:40])))
    got, wanted = compare(evaluator, c, scores, tmp_path)
    assert not (plain and c.map_.is_step) or got == wanted.tolist()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_evaluator_on_shapes(shape, evaluator, tmp_path):
    rng = np.random.default_rng(2)
    scores = np.concatenate((rng.normal(0, 3, 40), rng.random(40), ENDS))
    compare(evaluator, labelled(SHAPES[shape]), scores, tmp_path)


@pytest.mark.parametrize("name", SEGMENTED)
def test_the_evaluator_on_segments(name, evaluator):
    map_ = SEGMENTED[name]
    document = {"map": json.loads(json.dumps(map_.to_dict()))}
    scores = np.random.default_rng(3).random(30)
    for segment in (*map_.keys, 99 if name == "numbers" else "unknown"):
        got = [evaluator["calibrate"](document, s, segment) for s in scores.tolist()]
        assert np.abs(got - map_(scores, [segment] * 30)).max() <= TOL


@pytest.mark.parametrize("own", [None, "isotonic"])
def test_segments_of_several_columns(own, validator, evaluator, tmp_path):
    """They are valid, and the page's reader gives what the calibrator gives."""
    rng = np.random.default_rng(4)
    p, a, b = rng.random(600).round(2), rng.choice(["x", "y"], 600), rng.integers(0, 3, 600)
    c = cal.SegmentedCalibrator(own, shrinkage=20.0)
    c.fit(p, rng.random(600) < np.where(a == "x", p, p**2), segments=[a, b])
    document = saved(c, tmp_path)
    validator.validate(document)
    rows = [("x", 1), ("y", 2), ("x", 9), ("z", 1)]
    got = [evaluator["calibrate"](document, 0.4, row) for row in rows]
    assert np.abs(got - c.calibrate([0.4] * 4, segments=rows)).max() <= TOL
    document["map"]["keys"][0] = "x"
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(document)


@pytest.mark.parametrize("name", [name for name in VECTORS if "," not in name and name != "pairs"])
def test_the_evaluator_on_calibrators_of_rows(name, evaluator, tmp_path):
    compare(evaluator, fitted_vector(name), vector_rows(name)[0][:30], tmp_path)


@pytest.mark.parametrize("name", ROWS)
def test_the_evaluator_on_rows(name, evaluator, tmp_path):
    map_ = ROWS[name]
    rng = np.random.default_rng(4)
    z = rng.normal(0, 2, (20, map_.n_columns))
    rows = np.concatenate((z, 1e3 * z, np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)))
    if '"combine": "normalize"' in to_json(labelled(map_)) or "coded" not in to_json(
        labelled(map_)
    ):
        compare(evaluator, labelled(map_), rows, tmp_path)
    else:
        with pytest.raises(NotImplementedError):
            compare(evaluator, labelled(map_), rows, tmp_path)


@pytest.mark.parametrize("name", ["platt", "isotonic"])
def test_the_evaluator_knows_which_scores_a_calibrator_is_for(name, evaluator, tmp_path):
    for margins in (False, True):
        c = fitted(name, margins)
        document = saved(c, tmp_path)
        use = evaluator["calibrate"]
        if margins:
            assert use(document, 40.0) == pytest.approx(c.calibrate([40.0], on_range="allow")[0])
            continue
        with pytest.raises(ValueError, match="probabilities"):
            use(document, 1.5)
        assert use(document, 1.5, on_range="clip") == use(document, 1.0)
        old = {k: v for k, v in document.items() if k != "score_range"} | {"version": 1}
        assert use(old, 0.3) == use(document, 0.3)


def test_old_files_are_read_and_new_ones_are_not_taken_for_old(validator, tmp_path):
    document = saved(fitted("isotonic"), tmp_path)
    assert document["version"] == 2
    assert document["score_range"]["kind"] == "probability"
    old = {k: v for k, v in document.items() if k != "score_range"} | {"version": 1}
    validator.validate(old)
    read = Fitted.from_dict(old)
    assert read.score_range is None
    assert read.map == fitted("isotonic").map_
    assert read.calibrate([-3.0, 0.4, 40.0]).shape == (3,)  # nobody knows
    logit = {k: v for k, v in saved(fitted("platt"), tmp_path).items() if k != "score_range"}
    with pytest.raises(InputError, match="must be probabilities"):
        Fitted.from_dict(logit | {"version": 1}).calibrate([40.0])


RANGES = {"one of margins": ("number", -3.0, 2.5), "one of probabilities": ("probability", 0.1, 1)}


@pytest.mark.parametrize("name", RANGES)
def test_schema_and_reader_refuse_the_same_ranges(name, validator):
    document = json.loads(to_json(replace(labelled(JUMP), score_range=ScoreRange(*RANGES[name]))))
    counts = {True: 0, False: 0}
    for path, value, other in changed(document):
        if path[0] != "score_range":
            continue
        valid, why = validator.is_valid(other), refusal(other)
        counts[valid] += 1
        assert valid == (why is None) or (valid and re.search(UNSAYABLE, why)), (path, value, why)
    assert min(counts.values()) >= 2


def test_the_evaluator_refuses_what_it_does_not_know(evaluator, tmp_path):
    document = json.loads(to_json(labelled(SHAPES["mixture of mixtures"])))
    for path, value in (
        (("format",), "other"),
        (("version",), 3),
        (("map", "version"), 2),
        (("map", "members", 0, "members", 1, "kind"), "new"),
        (("map", "members", 0, "members", 1, "version"), 9),
    ):
        other = copy.deepcopy(document)
        holder = other
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = value
        (tmp_path / "c.json").write_text(json.dumps(other), encoding="utf-8")
        with pytest.raises(ValueError, match="newer"):
            evaluator["load"](tmp_path / "c.json")


# --- to_json --------------------------------------------------------------------------------------


def test_to_json_is_the_text_of_the_file(tmp_path):
    subjects = [fitted("isotonic"), fitted("beta"), fitted_segments(), fitted_vector("matrix")]
    subjects += [labelled(map_) for map_ in (*SHAPES.values(), *SEGMENTED.values(), *ROWS.values())]
    subjects += [Fitted(JUMP, ("é", "日本"), "é", 'a"b\n', {"é": None}, {"x": [], "y": {}})]
    for subject in subjects:
        cal.save(subject, tmp_path / "c.json")
        assert to_json(subject).encode("utf-8") == (tmp_path / "c.json").read_bytes()
        assert Fitted.from_dict(json.loads(to_json(subject))) == subject.to_fitted()


def test_to_json_refuses_what_is_not_one_file():
    rng = np.random.default_rng(0)
    features = rng.random((60, 2))
    local = cal.SimilarityBinning(gate=False, k=5).fit(
        rng.random(60), np.arange(60) % 2, features=features
    )
    with pytest.raises(InputError, match=r"SimilarityBinning cannot be one JSON text.*second file"):
        to_json(local)
    with pytest.raises(InputError, match=r"Piecewise came\. A bare map has to_dict"):
        to_json(JUMP)
