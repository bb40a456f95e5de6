"""Which column is for which class: as said, by names, and never by position."""

from __future__ import annotations

import pytest

from calibrant.cli.reading import are_special, assign, expand, in_order
from calibrant.errors import InputError, ParameterError


def matched(columns, labels):
    return assign(dict.fromkeys(columns), labels, "kind", option="--score")


ANIMALS = ["ape", "bee", "cat"]


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        (["ape", "bee", "cat"], ANIMALS),
        (["p_ape", "p_bee", "p_cat"], ANIMALS),
        (["ape_prob", "bee_prob", "cat_prob"], ANIMALS),
        (["s ape v2", "s bee v2", "s cat v2"], ANIMALS),
        (["1_ape", "2_bee", "x.cat"], ANIMALS),  # no common beginning
        (["P(APE)", "P(BEE)", "P(CAT)"], ANIMALS),
        (["p_car", "p_cart", "p_cat"], ["car", "cart", "cat"]),  # one ends another, all share c
        (["p_a", "p_ba", "p_cba"], ["a", "ba", "cba"]),
        (["p_new_york", "p_oslo", "p_sankt_gallen"], ["New York", "Oslo", "Sankt Gallen"]),
        (["p0", "p1", "p2"], [0, 1, 2]),
        (["p_1", "p_2", "p_10"], [1, 2, 10]),
        (["p_1", "p_2", "p_3"], [1.0, 2.0, 3.0]),
        (["p_-1", "p_0", "p_1"], [-1, 0, 1]),
    ],
)
def test_names_tell_the_classes_in_any_order(columns, labels):
    want = dict(zip(labels, columns, strict=True))
    assert matched(columns, labels) == want
    assert matched(columns[::-1], labels) == want
    assert matched([columns[1], columns[2], columns[0]], labels[::-1]) == want


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        (["s1", "s2", "s3"], ANIMALS),
        (["p_ape", "p_bee", "p_dog"], ANIMALS),
        (["p_ape", "p_bee"], ANIMALS),
        (["p_ape", "p_bee", "p_cat", "p_dog"], ANIMALS),
        (["p_0", "p_1", "p_2"], [1, 2, 3]),  # counted from 0 or from 1?
        (["cape", "tape", "p_cat"], ANIMALS),
        (["p_a", "P_A", "p_b"], ["a", "A", "c"]),
    ],
)
def test_what_is_not_clean_is_refused_with_both_lists(columns, labels):
    with pytest.raises(InputError, match="must tell which class") as refused:
        matched(columns, labels)
    text = str(refused.value)
    assert all(repr(column) in text for column in columns)
    assert all(repr(label) in text for label in labels)
    assert "Say which is which, for example: --score " in text


def test_what_is_said_comes_first_and_the_rest_by_names():
    asked = {"x": "bee", "p_cat": None, "p_ape": None}
    found = assign(asked, ANIMALS, "kind", option="--score")
    assert list(found.items()) == [("ape", "p_ape"), ("bee", "x"), ("cat", "p_cat")]
    crossed = {"p_ape": "bee", "p_bee": "ape", "p_cat": None}
    found = assign(crossed, ANIMALS, "kind", option="--score")
    assert list(found.values()) == ["p_bee", "p_ape", "p_cat"]


def test_a_class_without_rows_can_be_named():
    asked = {f"p{i}": str(i) for i in (3, 1, 2)}
    found = assign(asked, [1, 2], "kind", option="--prob")
    assert list(found.items()) == [(1, "p1"), (2, "p2"), (3, "p3")]
    with pytest.raises(InputError, match="one column for each of the 2 classes"):
        assign(dict.fromkeys(["p1", "p2", "p3"]), [1, 2], "kind", option="--prob")


def test_two_classes_need_one_column():
    with pytest.raises(InputError, match="--score p_yes --pos-label yes"):
        matched(["p_no", "p_yes"], ["no", "yes"])
    with pytest.raises(InputError, match="one class came: 'no'"):
        matched(["p_no"], ["no"])


def test_one_class_one_column():
    with pytest.raises(InputError, match="'x' and 'y' came for 'ape'"):
        assign({"x": "ape", "y": "ape"}, ANIMALS, "k", option="-s")
    with pytest.raises(InputError, match="'x' came for 'ape' and for 'bee'"):
        expand(["ape=x", "bee=x"], ["x"], option="--score")


def test_words_are_names_first_then_classes_then_patterns():
    names = ["id", "p_a", "p_b", "p=1", "[x]", " q "]

    def columns(*words, taken=()):
        return list(expand(words, names, option="--score", taken=taken).items())

    assert columns("p=1") == [("p=1", None)]
    assert columns("[x]") == [("[x]", None)]
    assert columns("p_*") == [("p_a", None), ("p_b", None)]
    assert columns("p_?", taken=("p_b",)) == [("p_a", None)]
    assert columns("q", "p_*", "z=p_a") == [(" q ", None), ("p_a", "z"), ("p_b", None)]
    assert columns("a=b=p_a") == [("p_a", "a=b")]
    assert columns("y=p=1") == [("p=1", "y")]
    with pytest.raises(InputError, match="no column matches 'r_\\*'"):
        columns("r_*")
    with pytest.raises(InputError, match=r"no column 'p_c'.*Did you mean 'p_b'"):
        columns("c=p_c")
    with pytest.raises(InputError, match="no column 'p_c'"):
        columns("p_a", "p_c")


def test_one_plain_word_is_not_looked_up():
    assert not are_special(["score"])
    assert are_special(["a", "b"])
    assert are_special(["p_*"])
    assert are_special(["a=b"])


def test_without_a_file_words_are_ordered_if_something_tells_it():
    assert in_order(["cat=z", "ape=x", "bee=y"], ANIMALS) == ("x", "y", "z")
    assert in_order(["p_cat", "p_ape", "p_bee"], ANIMALS) == ("p_ape", "p_bee", "p_cat")
    assert in_order(["z", "x", "y"], ANIMALS) is None


def test_options_of_one_score_are_refused():
    from calibrant.cli.sources import FileSource

    FileSource(None, [], several=True).refuse_beside(segment=None, pos_label=None)
    with pytest.raises(ParameterError, match="--pos-label is for one column"):
        FileSource(None, [], several=True).refuse_beside(pos_label="yes")
