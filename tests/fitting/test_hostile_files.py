"""Files that are damaged, foreign or malicious: refused with a reason, or they work."""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
import os
import struct
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.fitting.files import arrays_of_npz, npz_of_arrays
from calibrant.maps import Coded, Identity, Map, Piecewise, Segmented, Softmax, VectorMixture
from saved import saved, use

#: what json.dumps cannot write, by the text that stands for it
RAW = {
    "<5000 digits>": "9" * 5000,
    "<400 digits>": "-" + "7" * 400,
    "<overflow>": "1e400",
    "<nan>": "NaN",
    "<infinity>": "-Infinity",
    "<twin>": '{"kind": "identity", "version": 1, "version": 1}',
    "<deep>": "[" * 3000 + "]" * 3000,
    "<deep object>": '{"a":' * 3000 + "1" + "}" * 3000,
}
NAMES = ("kind", "version", "x", "left", "maps", "weights", "input", "pos_label", "arrays", "é")
NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 5e-324, 1e-300, 1e100, -1e290, 1e300, -1.7e308, 1.7e308)
JUNK = st.one_of(
    st.sampled_from([*RAW, "\ud800", "x" * 5000, "score", "logit", "probability", "piecewise"]),
    st.sampled_from([None, True, False, 0, 1, -1, 2, 99, *NUMBERS]),
    st.sampled_from([2**53 + 1, 2**63, 2**64, -(2**70), 10**300, [], {}, [[]], [[], []], [None]]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.floats(0, 1), max_size=4),
    st.lists(st.integers(-1, 1), max_size=4),
    st.just([0.5] * 2000),
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2), max_size=2),
    st.sampled_from(
        [
            {"kind": "identity", "version": 1},
            {"kind": "softmax", "version": 1, "matrix": 1.0, "bias": [0.0, 0.0]},
            {"kind": "logistic", "version": 1, "intercept": 1e290, "terms": [["x", -1e290]]},
        ]
    ),
)


def places(value, path=()):
    """Where something is in a document; of long lists, only some."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for i in sorted({0, 1, 2, len(value) // 2, len(value) - 1} & set(range(len(value)))):
            yield from places(value[i], (*path, i))


def look_up(value, path):
    for key in path:
        value = value[key]
    return value


@st.composite
def damaged(draw, document):
    """A copy of a document with some of it changed."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        known = [path for path in places(document) if path]
        if not known:
            break
        path = draw(st.sampled_from(known))
        parent, key = look_up(document, path[:-1]), path[-1]
        change = draw(st.sampled_from(("replace", "drop", "add", "move", "swap", "lengthen")))
        value = parent[key]
        if change == "drop":
            del parent[key]
        elif change == "add" and isinstance(parent, dict):
            parent[draw(st.sampled_from(NAMES))] = copy.deepcopy(draw(JUNK))
        elif change == "move":  # what stands somewhere else in it
            parent[key] = copy.deepcopy(look_up(document, draw(st.sampled_from(known))))
        elif change == "swap" and isinstance(value, list):
            parent[key] = draw(st.permutations(value[:20])) + value[20:]
        elif change == "lengthen" and isinstance(value, list):
            parent[key] = value + value[: draw(st.integers(1, 3))]
        elif isinstance(value, float) and draw(st.booleans()):
            parent[key] = draw(st.sampled_from(NUMBERS))
        else:
            parent[key] = copy.deepcopy(draw(JUNK))
    return document


def text_of(document):
    """JSON, with what json.dumps cannot write."""
    text = json.dumps(document)
    for word, raw in RAW.items():
        text = text.replace(f'"{word}"', raw)
    return text


def outcome(load, again):
    """The reason why it is refused; None if it works, and is the same after another save."""
    try:
        fitted = load()
    except cal.errors.InputError as refused:
        return str(refused)
    use(fitted)
    twin = again(fitted)
    assert twin == fitted
    assert hash(twin) == hash(fitted)
    return None


def saved_again(folder):
    def again(fitted):
        cal.save(fitted, folder / "again.json")
        return cal.load(folder / "again.json")

    return again


def of_maps():
    return {n: one for n, one in saved().items() if isinstance(one.rule, Map)}


def of_rows():
    return {n: one for n, one in saved().items() if not isinstance(one.rule, Map)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


# --- fuzzing ------------------------------------------------------------------------------------


def test_every_kind_is_used_after_loading(folder):
    for fitted in saved().values():
        assert outcome(lambda one=fitted: one, saved_again(folder)) is None


@given(st.data())
def test_a_damaged_file_is_refused_or_works(folder, data):
    known = of_maps()
    document = known[data.draw(st.sampled_from(sorted(known)))].to_dict()
    path = folder / "c.json"
    path.write_text(text_of(data.draw(damaged(document))))
    reason = outcome(lambda: cal.load(path), saved_again(folder))
    assert reason is None or reason.startswith(str(path))
    assert len(reason or "") < 1000


@given(st.data())
def test_damaged_objects_are_refused_or_work(folder, data):
    """The same without a file: what JSON never makes comes from Python."""
    known = of_maps()
    document = known[data.draw(st.sampled_from(sorted(known)))].to_dict()
    document = data.draw(damaged(document))
    odd = st.sampled_from([float("nan"), float("-inf"), 10**5000, object(), b"x", {1: 2}, (1,)])
    if document and data.draw(st.booleans()):
        path = data.draw(st.sampled_from([p for p in places(document) if p]))
        look_up(document, path[:-1])[path[-1]] = data.draw(odd)
    reason = outcome(lambda: cal.Fitted.from_dict(document), saved_again(folder))
    assert len(reason or "") < 1000
    part = document.get("map")
    if isinstance(part, dict) and reason is not None:
        with suppress(cal.errors.InputError):
            assert isinstance(Map.from_dict(part), Map)


@given(st.data())
def test_damaged_rules_are_refused_or_work(folder, data):
    known = of_rows()
    fitted = known[data.draw(st.sampled_from(sorted(known)))]
    document, arrays = fitted.to_dict(), fitted.rule.arrays
    arrays = {name: data.draw(damaged_array(array)) for name, array in arrays.items()}
    if data.draw(st.booleans()):
        document = data.draw(damaged(document))
    path = folder / "l.json"
    write_pair(path, document, npz_of_arrays(arrays))
    reason = outcome(lambda: cal.load(path), saved_again(folder))
    assert reason is None or reason.startswith(str(path))
    assert len(reason or "") < 1000


@st.composite
def damaged_array(draw, array):
    changed = array.copy()
    if draw(st.integers(0, 5)) or not array.size:
        return changed
    change = draw(st.sampled_from(("cell", "cell", "rows", "shape", "order")))
    if change == "cell":
        numbers = NUMBERS if array.dtype.kind == "f" else (0, 1, -1, -2, 7)
        changed.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from(numbers))
    elif change == "rows":
        changed = changed[: draw(st.integers(0, len(array)))]
    elif change == "shape":
        changed = changed.reshape(-1, 1)
    else:
        changed = changed[::-1]
    return changed


def write_pair(path, document, content):
    """A calibrator of rows, with a checksum that is right."""
    beside = path.with_name(f"{path.name}.npz")
    beside.write_bytes(content)
    if isinstance(document, dict):
        entry = {"file": beside.name, "sha256": hashlib.sha256(content).hexdigest()}
        document = {**document, "arrays": entry}
    path.write_text(text_of(document))


@given(st.data())
def test_damaged_bytes_are_refused_or_work(folder, data):
    path = folder / "b.json"
    if data.draw(st.booleans()):
        cal.save(saved()["hand-band"], path)
        path.write_bytes(data.draw(damaged_bytes(path.read_bytes())))
    else:
        document, arrays = saved()["acp"].to_dict(), saved()["acp"].rule.arrays
        write_pair(path, document, data.draw(damaged_bytes(npz_of_arrays(arrays))))
    reason = outcome(lambda: cal.load(path), saved_again(folder))
    assert reason is None or reason.startswith(str(path))


@st.composite
def damaged_bytes(draw, content):
    changed = bytearray(content)
    if draw(st.booleans()):
        del changed[draw(st.integers(0, len(changed))) :]
    for _ in range(draw(st.integers(0, 3))):
        if changed:
            changed[draw(st.integers(0, len(changed) - 1))] = draw(st.integers(0, 255))
    return bytes(changed)


# --- what a file may not be ---------------------------------------------------------------------


@pytest.fixture
def good():
    return cal.Isotonic().fit([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1]).to_fitted().to_dict()


def refusal(path):
    with pytest.raises(cal.errors.InputError) as refused:
        cal.load(path)
    message = str(refused.value)
    assert message.startswith(str(path))
    return message


FOREIGN = {
    "empty": (lambda t: b"", "Expecting value"),
    "gzip": (gzip.compress, "compressed by gzip. Unpack it first"),
    "UTF-16": (lambda t: t.decode().encode("utf-16"), "UTF-16. Convert it to UTF-8"),
    "UTF-16 without a mark": (lambda t: t.decode().encode("utf-16-le"), "not a calibrator file"),
    "byte order mark": (lambda t: b"\xef\xbb\xbf" + t, "byte order mark"),
    "pickle": (lambda t: b"\x80\x05K\x01.", "never loaded"),
    "zip": (lambda t: b"PK\x03\x04....", "zip archive"),
    "Latin-1": (lambda t: t.replace(b"Isotonic", b"Isot\xe9nic"), "can't decode byte 0xe9"),
    "two documents": (lambda t: t + t, "Extra data"),
    "cut": (lambda t: t[: len(t) // 2], "not a calibrator file"),
    "deep": (lambda t: b"[" * 100_000, "it nests too deeply"),
    "deep objects": (lambda t: b'{"a":' * 100_000, "it nests too deeply"),
    "many digits": (lambda t: t.replace(b'"version": 1', b'"version": ' + b"1" * 5000), "4300"),
    "half a pair": (lambda t: t.replace(b"Isotonic", rb"\ud83d"), "surrogates not allowed"),
    "the wrong half": (lambda t: t.replace(b'"params"', rb'"\uDE00", "params"'), "not a calib"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_refused(good, tmp_path, name):
    change, words = FOREIGN[name]
    path = tmp_path / "c.json"
    path.write_bytes(change(json.dumps(good).encode()))
    assert words in refusal(path)


def test_a_whole_surrogate_pair_is_a_character(good, tmp_path):
    good["classes"], good["pos_label"] = ["a", "😀"], "😀"
    path = tmp_path / "c.json"
    path.write_text(json.dumps(good))  # as \ud83d\ude00
    assert "\\ud83d" in path.read_text()
    assert cal.load(path).classes == ("a", "😀")


def test_places_that_are_no_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.json"):
        cal.load(tmp_path / "gone.json")
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        cal.load(tmp_path)
    with pytest.raises(cal.errors.InputError, match="cannot be the name of a file"):
        cal.load("a\0b")


@pytest.mark.parametrize("twice", ["version", "left", "params"])
def test_a_key_that_occurs_twice_is_refused(good, tmp_path, twice):
    text = json.dumps(good)
    path = tmp_path / "c.json"
    path.write_text(text.replace(f'"{twice}":', f'"{twice}": 1, "{twice}":', 1))
    assert f"'{twice}' occurs twice" in refusal(path)


@pytest.mark.parametrize("version", [0, -1, 1.0, True, "1", None, [1]], ids=repr)
def test_versions_must_be_whole_numbers(good, tmp_path, version):
    path = tmp_path / "c.json"
    for change in ({"version": version}, {"map": {**good["map"], "version": version}}):
        path.write_text(json.dumps({**good, **change}))
        assert "format version, a whole number from 1" in refusal(path)


def test_newer_versions_say_what_to_do(good, tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({**good, "version": 9}))
    assert "has format version 9, but this calibrant reads up to 2. Upgrade" in refusal(path)
    good["map"]["version"] = 99
    path.write_text(json.dumps(good))
    assert "map has format version 99, but this calibrant reads up to 1. Upgrade" in refusal(path)


# --- reasons ------------------------------------------------------------------------------------


def piecewise(**fields):
    known = {"kind": "piecewise", "version": 1, "x": [0.0], "left": [0.5], "right": [0.5]}
    return {**known, **fields}


ROW = {"kind": "logistic", "version": 1, "intercept": 0.0, "terms": []}
IDENTITY = {"kind": "identity", "version": 1}
REASONS = {
    "unsorted": (
        piecewise(x=[0.1, 0.5, 0.3], left=[0.0] * 3, right=[0.0] * 3),
        r"strictly ascending, but knot 2 \(0.3\) follows 0.5",
    ),
    "outside": (
        piecewise(x=[0.1, 0.2], left=[0.0, 1.5], right=[0.0] * 2),
        r"left must lie in \[0, 1\], but number 1 is 1.5",
    ),
    "infinite": (piecewise(x=[float("inf")]), "piecewise.x must be finite, but number 0 is inf"),
    "a bool": (piecewise(left=[True]), "cannot hold a value of type bool"),
    "a word": (piecewise(left=["0.5"]), "left must be numbers, but <U3 came"),
    "ragged": (piecewise(x=[[0.0], [1.0, 2.0]]), "but lists of different lengths came"),
    "a hole": (piecewise(x=[None, 1.0]), "x must be numbers, but None came"),
    "a huge integer": (piecewise(x=[10**400, 0.0]), "but a number beyond all doubles came"),
    "a hole after a huge integer": (piecewise(x=[10**30, None]), "must be numbers, but None came"),
    "huge logits": (
        piecewise(x=[0.0, 1.0], left=[0.0, 1e308], right=[-1e308, 0.0], output="logit"),
        "must be logits of at most 1e.300",
    ),
    "a missing field": (
        {"kind": "piecewise", "version": 1, "x": [], "lft": []},
        r"\['left', 'right'\] did not come and \['lft'\] came as well",
    ),
    "numbers as keys": ({**IDENTITY, 3: 4}, r"\[3\] came as well"),
    "a short term": ({**ROW, "terms": [["x"]]}, r"must be a pair, but \('x',\) came"),
    "text for terms": ({**ROW, "terms": "z"}, "pairs of a feature and its coefficient"),
    "a far coefficient": ({**ROW, "terms": [["x", 10**400]]}, "must be finite and at most 1e.290"),
    "a short clip": ({**ROW, "clip": [0.1]}, r"clip must be a pair, but \[0.1\] came"),
    "text for maps": ({"kind": "chain", "version": 1, "steps": ""}, "must be a sequence of maps"),
    "lists in lists": ({"kind": "chain", "version": 1, "steps": None}, "cannot be made of these"),
    "text for keys": (
        {"kind": "segmented", "version": 2, "default": IDENTITY, "keys": "ab", "maps": []},
        "must be a sequence of strings or integers",
    ),
    "half a pair in a key": (
        {"kind": "segmented", "version": 2, "default": IDENTITY, "keys": ["\ud800"], "maps": []},
        "strings or integers",
    ),
    "a code without columns": (
        {"kind": "coded", "version": 2, "code": [[], []], "maps": [], "combine": "coupling"},
        "2 classes and 0 columns",
    ),
    "a class in no column": (
        {
            "kind": "coded",
            "version": 2,
            "code": [[1], [-1], [0]],
            "maps": [IDENTITY],
            "combine": "coupling",
        },
        "in none are classes 2",
    ),
}


@pytest.mark.parametrize("name", REASONS)
def test_the_message_says_the_reason(name):
    description, words = REASONS[name]
    with pytest.raises(cal.errors.InputError, match=words):
        Map.from_dict(description)


def test_long_values_are_not_repeated_at_length():
    for value in ("x" * 10**6, [1] * 10**6, 10**5000):
        with pytest.raises(cal.errors.InputError) as refused:
            Map.from_dict({"kind": "identity", "version": value})
        assert len(str(refused.value)) < 300
    nested = []
    for _ in range(500):
        nested = [nested]
    with pytest.raises(cal.errors.InputError, match="lists in lists"):
        Map.from_dict(piecewise(x=nested))


# --- what can be made but would not work ----------------------------------------------------------


def test_labels_must_fit_the_map():
    three = Softmax(1.0, [0.0, 0.0, 0.0])
    with pytest.raises(
        cal.errors.InputError, match="gives 3 probabilities, so classes must be 3 labels"
    ):
        cal.Fitted(three, (0, 1), None)
    with pytest.raises(cal.errors.InputError, match="and pos_label None"):
        cal.Fitted(three, (0, 1, 2), 1)
    with pytest.raises(cal.errors.InputError, match="different labels"):
        cal.Fitted(three, ("a", "b", "a"), None)
    for label in ("\ud800", 2**64, float("nan"), None, (1,)):
        with pytest.raises(cal.errors.InputError, match="labels must be"):
            cal.Fitted(Identity(), (0, label), 0)


def test_labels_of_several_types_come_back_as_they_are():
    for labels in ((1, "1"), (True, 1), (0, 0.5), ("a", "a\0"), (2**63, -1), (False, "x")):
        fitted = cal.Fitted(Identity(), labels, labels[1])
        found = fitted.predict([0.1, 0.9]).tolist()
        assert [(type(v), v) for v in found] == [(type(v), v) for v in labels]
        assert cal.Fitted.from_dict(json.loads(json.dumps(fitted.to_dict()))) == fitted
    assert cal.Fitted(Identity(), (0, 1), 1) != cal.Fitted(Identity(), (False, True), True)


def test_members_of_a_mixture_must_agree():
    pairs = np.array([[1, 1, 0], [-1, 0, 1], [0, -1, -1]])
    coded = Coded(pairs, (Identity(),) * 3, "coupling")
    four = Coded(np.vstack((pairs, [[-1, -1, -1]])), (Identity(),) * 3, "coupling")
    with pytest.raises(cal.errors.InputError, match="same columns and classes"):
        VectorMixture([0.5, 0.5], (coded, four))
    assert VectorMixture([1.0], (four,))([[0.1, 0.2, 0.3]]).shape == (1, 4)
    above = VectorMixture([0.5, 0.5 + 9e-10], (Softmax(1.0, [900.0, 0.0]),) * 2)
    assert above([[0.0, 0.0]]).tolist() == [[1.0, 0.0]]
    with pytest.raises(cal.errors.InputError, match="factor"):
        VectorMixture([1.0], (coded,), "logit", 0.0, 1e300)


def test_logits_of_opposite_ends_do_not_overflow():
    steep = Piecewise.linear([0.0, 1.0], [-1e300, 1e300], output="logit")
    use(cal.Fitted(steep, (0, 1), 1))
    assert steep([0.25, 0.5, 0.75]).tolist() == [0.0, 0.5, 1.0]


def test_columns_that_do_not_link_the_classes_are_refused_at_once():
    pairs = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    with pytest.raises(cal.errors.InputError, match="none compares classes 0, 1 with 2, 3"):
        Coded(pairs, (Identity(),) * 2, "least_squares")


# --- small files must not become large ------------------------------------------------------------


def test_a_code_that_would_need_gigabytes_is_refused():
    code = np.ones((700, 701))
    code[:, ::2] = -1.0
    code[0] = -code[0]
    with pytest.raises(cal.errors.InputError, match="too large to be combined"):
        Coded(code, (Identity(),) * 701, "least_squares")
    tall = np.zeros((200_000, 1))
    tall[0], tall[1] = 1.0, -1.0
    with pytest.raises(cal.errors.InputError, match="all pairs of classes"):
        Coded(tall, (Identity(),), "pairwise")


def test_keys_that_share_their_hash_are_refused():
    """Integers that differ by 2⁶¹ − 1 have one hash: a dict of many would take hours."""
    keys = tuple(i * (2**61 - 1) for i in range(100))
    with pytest.raises(cal.errors.InputError, match="integers of 64 bits"):
        Segmented(Identity(), keys, (Identity(),) * 100)


def npy(descr="'<f8'", shape="(1,)", data=b"\0" * 8, order="False", magic=b"\x93NUMPY\x01\x00"):
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return magic + struct.pack("<H", len(header)) + header + data


def archive(*members, **options):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", **options) as packed:
        for name, content in members:
            packed.writestr(name, content)
    return stream.getvalue()


ARRAYS = {
    "a terabyte": (archive(("a.npy", npy(shape="(1000000000000,)"))), "holds 8 bytes"),
    "more than a terabyte": (archive(("a.npy", npy(shape=f"({10**30}, 0)", data=b""))), "arrays"),
    "too short": (archive(("a.npy", npy(data=b"\0" * 7))), "holds 7 bytes"),
    "objects": (archive(("a.npy", npy(descr="'|O'"))), "plain numbers"),
    "records": (archive(("a.npy", npy(descr="[('x', '<f8')]"))), "plain numbers"),
    "text": (archive(("a.npy", npy(descr="'<U2'"))), "plain numbers"),
    "code": (archive(("a.npy", npy(shape="(__import__('os').getpid(),)"))), "plain numbers"),
    "another format": (archive(("a.npy", npy(magic=b"\x93NUMPY\x03\x00"))), "version 1.0"),
    "half a bool": (archive(("a.npy", npy(descr="'|b1'", data=b"\7"))), "neither false nor true"),
    "no header": (archive(("a.npy", b"\x93NUMPY\x01\x00\x01")), "does not hold arrays"),
    "compressed": (archive(("a.npy", npy()), compression=zipfile.ZIP_DEFLATED), "not compressed"),
    "no array": (archive(("a.txt", b"x")), "each a .npy"),
    "no archive": (b"PK", "does not hold arrays"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_not_what_they_say(name):
    content, words = ARRAYS[name]
    with pytest.raises(cal.errors.InputError, match=words):
        arrays_of_npz(content)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_arrays_must_lie_in_a_file(tmp_path):
    """A link to a file is one. A pipe would be waited for, and a device may have no end."""
    cal.save(saved()["acp"], tmp_path / "c.json")
    (arrays,) = tmp_path.glob("*.npz")
    moved = arrays.rename(tmp_path / "elsewhere")
    arrays.symlink_to(moved)
    assert cal.load(tmp_path / "c.json") == saved()["acp"]
    for odd in (Path("/dev/zero"), tmp_path, tmp_path / "pipe"):
        arrays.unlink()
        if odd.name == "pipe":
            os.mkfifo(odd)
        arrays.symlink_to(odd)
        with pytest.raises(cal.errors.InputError, match="must be a file, but it is a folder, pipe"):
            cal.load(tmp_path / "c.json")


def test_archives_whose_members_share_their_bytes_are_refused():
    """A directory may name the same megabyte a thousand times."""
    content = archive(("a.npy", npy(shape="(100,)", data=b"\0" * 800)))
    start = content.index(b"PK\x01\x02")
    entry, end = content[start : content.index(b"PK\x05\x06")], content.index(b"PK\x05\x06")
    names = [f"{chr(97 + i)}.npy".encode() for i in range(20)]
    entries = b"".join(entry.replace(b"a.npy", name) for name in names)
    last = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 20, 20, len(entries), start, 0)
    with pytest.raises(cal.errors.InputError, match="larger than the file"):
        arrays_of_npz(content[:start] + entries + last)
    assert end > start
    with pytest.warns(UserWarning, match="Duplicate name"):
        twins = archive(("a.npy", npy()), ("a.npy", npy()))
    with pytest.raises(cal.errors.InputError, match="different names"):
        arrays_of_npz(twins)
    locked = bytearray(archive(("a.npy", npy())))
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(cal.errors.InputError, match="encrypted"):
        arrays_of_npz(bytes(locked))


def test_arrays_of_all_shapes_survive():
    arrays = {
        "table": np.arange(6.0).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        "flags": np.array([True, False]),
        "none": np.empty((0, 3)),
        "one": np.array(1.5),
        "wide": np.empty((3, 0), dtype=bool),
        "whole": np.arange(3),
    }
    for name, array in arrays_of_npz(npz_of_arrays(arrays)).items():
        assert array.dtype == arrays[name].dtype
        assert array.shape == arrays[name].shape
        assert np.array_equal(array, arrays[name])


def test_rules_that_would_overflow_are_refused():
    document, arrays = saved()["acp"].to_dict(), saved()["acp"].rule.arrays
    heavy = {**arrays, "negative": np.full(len(arrays["negative"]), 1e308)}
    with pytest.raises(cal.errors.InputError, match=r"at most 1e\+100"):
        cal.Fitted.from_dict(document, heavy)
    document["map"]["pseudo"] = 10**400
    with pytest.raises(cal.errors.InputError, match="pseudo must be a number from 0"):
        cal.Fitted.from_dict(document, arrays)
    document, arrays = saved()["similarity"].to_dict(), saved()["similarity"].rule.arrays
    heavy = {**arrays, "counts": arrays["counts"] * 1e200}
    with pytest.raises(cal.errors.InputError, match="out of range"):
        cal.Fitted.from_dict(document, heavy)
    document["map"]["attributes"][1][1] = ["\ud800", "x", "y"]
    with pytest.raises(cal.errors.InputError, match="is no attribute"):
        cal.Fitted.from_dict(document, arrays)


def test_large_files_are_read_and_written(tmp_path):
    n = 100_000
    rng = np.random.default_rng(0)
    x, p = np.sort(rng.random(n)), np.sort(rng.random(n))
    fitted = cal.Fitted(Piecewise(x, p, p), (0, 1), 1)
    cal.save(fitted, tmp_path / "c.json")
    assert cal.load(tmp_path / "c.json") == fitted
    assert max(map(len, (tmp_path / "c.json").read_text().splitlines())) < 150


def test_what_json_cannot_hold_is_refused_on_save(tmp_path):
    features = [[1.0, "\ud800"], [2.0, "b"], [3.0, "b"], [4.0, "\ud800"]]
    c = cal.SimilarityBinning(gate=False, k=2).fit(
        [0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], features=features
    )
    with pytest.raises(cal.errors.InputError, match="cannot be written as JSON"):
        cal.save(c, tmp_path / "c.json")
    assert not list(tmp_path.iterdir())
