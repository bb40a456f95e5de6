"""Files of the older form "calibrant-local", as calibrant 0.2.0 wrote them, are read for ever.

Rules that need more of a row than its score were once saved in a form of their own.
"""

from __future__ import annotations

import base64
import json
import re
import zlib

import numpy as np
import pytest

import calibrant as cal
from calibrant.rules.base import Map

#: of each kind: the JSON file, the packed file of arrays, what is asked beside scores, and what
#: the version that wrote the file gave
OLD = {
    "trees": (
        '{"format": "calibrant-local", "version": 2, "method": "hand", "params": {}, "classes'
        '": ["no", "yes"], "pos_label": "no", "rule": {"kind": "trees", "version": 1, "state"'
        ': {"attributes": [["age", null], ["colour", ["blue", "green", "red"]]], "named": tru'
        'e, "start": {"kind": "logistic", "version": 1, "intercept": 0.1, "terms": [["z", 0.7'
        ']], "clip": null}, "sizes": [2, 2], "factors": [1.25, 0.875], "trees": {"column": [0'
        ', 1, 2, 1, 0], "left": [1, -1, -4, 4, -6], "right": [-3, -2, -5, -8, -7], "subset": '
        '[-1, 0, -1, 1, -1], "roots": [0, 2, 3, -9], "threshold": [0.25, 0.0, -0.5, 0.0, 1.5]'
        ', "leaves": [-0.5, 0.125, 0.75, -0.25, 1.0, 0.3, -0.2, 0.1, 0.05], "missing_left": ['
        '1, 0, 0, 0, 0], "sets": [[0, 2], [1]]}}}, "score_range": null, "provenance": {"rows"'
        ": 3}}",
        "",
        {"features": [[0.3, "red"], [None, "white"], [-2.0, "blue"]]},
        [
            ["0x1.ba5241e78bfd9p-2", "0x1.22d6df0c3a014p-1"],
            ["0x1.a05ed71af3841p-1", "0x1.7e84a39431efcp-3"],
            ["0x1.d80f91f94c23dp-1", "0x1.3f8370359ee18p-4"],
        ],
    ),
    "bins": (
        '{"format": "calibrant-local", "version": 2, "method": "ACP", "params": {"classes": n'
        'ull, "gate": "auto", "interval": "auto", "level": 0.95, "pos_label": null, "scale": '
        '"probability", "smoothing": "laplace", "weights": "importance"}, "classes": [0, 1], '
        '"pos_label": 1, "rule": {"kind": "bins", "version": 1, "state": {"pseudo": 1.0}}, "s'
        'core_range": {"kind": "probability", "low": 0.02, "high": 0.91}, "provenance": {"cal'
        'ibrant": "0.2.0", "weight": 8.0, "rows": 8, "effective_size": 8.0, "positive_weight"'
        ': 4.0}, "arrays": {"file": "bins.json.c3cdb67d7d5d.npz", "sha256": "c3cdb67d7d5d71be'
        '8694b87a5403673df52bfe3602f853e3ce06eabf80d6b760"}}',
        "c-jl_W@gc4fB;2?-J7kl{zCy5g9t-$a(+>2v0h$5B_o3X!vUx|7(Ll9)HfiKk)e#CT0JGTIJrpON<rNw%|cy"
        "AK|L+MsH7+{FFwC0B^4y@mY7qV3KTESNGwPN@--}UG<6he6(|5))gtTMA68AVhtNyxJsws8Sr_eFUkC1xYkd"
        "qAe_|igf9R`5%yauUAmP_9?d8D=-r5JC_`S)vu@2^U9-!azQqvPlGRsm2tM3_5zz2H<tN<pCF8=||_nFp7_m"
        "F*GkYAiR_<fJ*E8;?ffg!+~kx7>sHRT_G`VTp18yG<(A|IgZ1Em_6J{}Z(e}E)%8ba3z3UTZ@e*x`84*vjeR"
        "yL3fGZ3x;(m$9$JOIiC(2o",
        {"lower": [0.0, 0.3, 0.6], "upper": [0.5, 0.7, 1.0]},
        [
            ["0x1.999999999999ap-2", "0x1.3333333333333p-1"],
            ["0x1.0000000000000p-1", "0x1.0000000000000p-1"],
            ["0x1.2492492492492p-1", "0x1.b6db6db6db6dbp-2"],
        ],
    ),
    "neighbours": (
        '{"format": "calibrant-local", "version": 2, "method": "SimilarityBinning", "params":'
        ' {"attribute_weights": null, "classes": null, "gate": false, "k": 3, "metric": "ibk"'
        ', "neighbour_weights": "uniform", "nominal": null, "pos_label": null, "progress": fa'
        'lse, "smoothing": "none", "use_scores": true, "weights": "importance"}, "classes": ['
        '0, 1], "pos_label": 1, "rule": {"kind": "neighbours", "version": 1, "state": {"attri'
        'butes": [["column 0", ["blue", "green", "red"]], ["column 1", null]], "named": false'
        ', "k": 3, "metric": "ibk", "weights": "uniform", "smoothing": "none"}}, "score_range'
        '": {"kind": "probability", "low": 0.02, "high": 0.91}, "provenance": {"calibrant": "'
        '0.2.0", "weight": 8.0, "rows": 8, "effective_size": 8.0, "positive_weight": 4.0}, "a'
        'rrays": {"file": "neighbours.json.986f0e932292.npz", "sha256": "986f0e9322920bd0ddf0'
        '7c7102d4b975df5fa859ed3c03fca3f15739f197cc18"}}',
        "c-jl_W@gc4fB;1X<4Joy|Azu@1`&q5(%jUd%w)a1f=WgP0R{#}s7fe3*)P;LAd-=xjG<aRCAB!YNZm?7-6qX"
        "KT}MGZEx)LwC^0WSzbGXYB<_}&Q=AGEFV09TNComWEOZo%G<6he703o$5LY~~uNGP7{;+C_J=Ap$9uKR4A{U"
        "{27Khf?fji_{A4B;U>|^>5ebtD04(0!_mj^3&3*~=+n)d|C=Wuuf(*F7-%zOrj{1W>Bl)%f8JEIE=JT741B_"
        "<W8=9R$0ZUR&tjK&&vHA#l_4Lb&SgrfRI^0!1O%rBfkza-}a-3ar_0;sYD_`G71X+o@545{c9Mkr=N!l+&on"
        "RVnnax^99m*$le5AGxm10U>(;}fe69boE54ZD=+Rr_IKCxj>;;>%Mr(=$j*>cobjkq%`c2oFQJpBzyAwEOz)"
        ">nMK8&&|wB%t7;02UL9rHT+~qJwF9_GcxHiqn6;XOu&s4vkl<%j8vYZYXp^E6QGgCg`&|Gs1;F`q3Z*c6bqn"
        "*0Vj$+PGH`HmmBEXK)Dd+PE_ljfVIK$B)UFO3WPaR2t}U)3j>z)h^`+L+a1t&MAiQVq#q;h1H4(;K=N!rm;i"
        "L^0ag$X0K#5<2>",
        {"features": [["red", 1.0], ["blue", None], ["white", -2.0]]},
        [
            ["0x1.5555555555555p-1", "0x1.5555555555555p-2"],
            ["0x0.0p+0", "0x1.0000000000000p+0"],
            ["0x1.0000000000000p+0", "0x0.0p+0"],
        ],
    ),
    "neighbours3": (
        '{"format": "calibrant-local", "version": 2, "method": "SimilarityBinning", "params":'
        ' {"attribute_weights": null, "classes": null, "gate": false, "k": 3, "metric": "ibk"'
        ', "neighbour_weights": "uniform", "nominal": null, "pos_label": null, "progress": fa'
        'lse, "smoothing": "none", "use_scores": true, "weights": "importance"}, "classes": ['
        '0, 1, 2], "pos_label": null, "rule": {"kind": "neighbours", "version": 1, "state": {'
        '"attributes": [["column 0", null]], "named": false, "k": 3, "metric": "ibk", "weight'
        's": "uniform", "smoothing": "none"}}, "score_range": {"kind": "probability", "low": '
        '0.0, "high": 1.0}, "provenance": {"calibrant": "0.2.0", "weight": 9.0, "rows": 9, "e'
        'ffective_size": 9.0, "class_weights": [3.0, 3.0, 3.0]}, "arrays": {"file": "neighbou'
        'rs3.json.42676ea32c02.npz", "sha256": "42676ea32c021521faf0f44011cb6a298b97c3008f82a'
        'bf7d6012bfc91ff7b8a"}}',
        "c-jl_W@gc4fB;1XemnlM|4_iqAi|JWnwwgbnXH#rP|3(3z_5T3q7X(;_6zk5h-73aW2jb7Ni9w;Qnyl2w@I^"
        "5*HKVU%P%S^O3aJTFG@)TiMu7{6sH2ki!%}nQh|I8OC1FhO&x_=1+oDb#1$Xxq3&mBeI2+%uJyG&hzQ&<4=O"
        "I=aP|xcJh8vNxWJa{`eXYbu!0*<c^SC8$U66jRU*&qziGtuANmTD=Wy@<iUOtVjltluJ%oD;DzD)125jv?do"
        "HjA&!PGsK;;D-VD5p?`|JyCK`Ng@<s}?o{s8IHh<Oip2h3kE`yt}*?7`Y?U%})ZAo`v|?LTf03x@!d$bFzHu"
        "@e@#T)@apOe#*zD}lxB5~w;DjWup-k__n^xA+07|F(*0?1K4^6X?I>e4x8w-fMs=Yry9{n@kg8y=Oq7_fVbw"
        "Ie66^<fuu`FU>1~yFCJ$-6E)z?To1!HHhqo9iYn-;#1ok;>|~m6aFyfnXot!LX?H^<*AwJ8Sreg0IGfg0~O-"
        "NM2E7N!6*_jX;eR&c|;eZ_%S~>GcPd*&5y+89U}c`K)D|SycwBvnNe#kP?ZG2+(<Fn0M0K+br`xvP>Hw%TIO"
        "+~XuJ#5iYOn^^?^#7255kAqUhVp#DFMw(6xbbIVcZ<FsgMG%nV3*9>agYl(+zz#)MGx@vt&rNtfvQL9q;TE~"
        "@?yApIC|9^lQ&29jq3!UUjOw}5#7`**^a",
        {"features": [[0.5], [4.0], [9.0]]},
        [
            ["0x1.5555555555555p-2", "0x0.0p+0", "0x1.5555555555555p-1"],
            ["0x1.5555555555555p-2", "0x1.5555555555555p-2", "0x1.5555555555555p-2"],
            ["0x0.0p+0", "0x1.5555555555555p-1", "0x1.5555555555555p-2"],
        ],
    ),
    "class_scores": (
        '{"format": "calibrant-local", "version": 2, "method": "SimilarityBinning", "params":'
        ' {"attribute_weights": null, "classes": null, "gate": true, "k": 3, "metric": "ibk",'
        ' "neighbour_weights": "uniform", "nominal": null, "pos_label": null, "progress": fal'
        'se, "smoothing": "none", "use_scores": true, "weights": "importance"}, "classes": [0'
        ', 1, 2], "pos_label": null, "rule": {"kind": "class scores", "version": 1, "state": '
        '{"map": {"kind": "softmax", "version": 1, "matrix": 1.0, "bias": [0.0, 0.0, 0.0], "i'
        'nput": "logit", "floor": 5e-324, "inner": null}}}, "score_range": {"kind": "probabil'
        'ity", "low": 0.0, "high": 1.0}, "provenance": {"calibrant": "0.2.0", "weight": 9.0, '
        '"rows": 9, "effective_size": 9.0, "class_weights": [3.0, 3.0, 3.0]}}',
        "",
        {"features": [[0.5], [4.0], [9.0]]},
        [
            ["0x1.db193a96987b6p-2", "0x1.20296e28093f0p-2", "0x1.04bd57415e45cp-2"],
            ["0x1.49c5c30de4633p-2", "0x1.49c5c30de4633p-2", "0x1.6c7479e437399p-2"],
            ["0x1.dc900097b98e5p-3", "0x1.88dbffda119c8p-2", "0x1.88dbffda119c8p-2"],
        ],
    ),
    "kept": (
        '{"format": "calibrant-local", "version": 2, "method": "SimilarityBinning", "params":'
        ' {"attribute_weights": null, "classes": null, "gate": true, "k": 3, "metric": "ibk",'
        ' "neighbour_weights": "uniform", "nominal": null, "pos_label": null, "progress": fal'
        'se, "smoothing": "none", "use_scores": true, "weights": "importance"}, "classes": [0'
        ', 1], "pos_label": 1, "rule": {"kind": "trees", "version": 1, "state": {"attributes"'
        ': [], "named": true, "start": {"kind": "piecewise", "version": 1, "x": [-744.4400719'
        '213812, 36.7368005696771], "left": [-0.001634397576430302, -0.001634397576430302], "'
        'right": [-0.001634397576430302, -0.001634397576430302], "input": "logit", "output": '
        '"logit"}, "sizes": [], "factors": [], "trees": {"column": [], "left": [], "right": ['
        '], "subset": [], "roots": [], "threshold": [], "leaves": [], "missing_left": [], "se'
        'ts": []}}}, "score_range": {"kind": "probability", "low": 0.02, "high": 0.91}, "prov'
        'enance": {"calibrant": "0.2.0", "weight": 8.0, "rows": 8, "effective_size": 8.0, "po'
        'sitive_weight": 4.0}}',
        "",
        {"features": [["red", 1.0], ["blue", None], ["white", -2.0]]},
        [
            ["0x1.00358e5149d52p-1", "0x1.ff94e35d6c55bp-2"],
            ["0x1.00358e5149d52p-1", "0x1.ff94e35d6c55bp-2"],
            ["0x1.00358e5149d52p-1", "0x1.ff94e35d6c55bp-2"],
        ],
    ),
}


def written(name, folder):
    text, packed, *_ = OLD[name]
    path = folder / f"{name}.json"
    path.write_text(text, encoding="utf-8")
    if packed:
        beside = folder / json.loads(text)["arrays"]["file"]
        beside.write_bytes(zlib.decompress(base64.b85decode(packed)))
    return path


def scores_for(fitted):
    three = [[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.0, 0.5, 0.5]]
    return [0.2, 0.5, 0.9] if len(fitted.classes) == 2 else three


@pytest.mark.parametrize("name", OLD)
def test_old_files_give_the_numbers_that_they_gave(name, tmp_path):
    *_, beside, wanted = OLD[name]
    fitted = cal.load(written(name, tmp_path))
    p = fitted.predict_proba(scores_for(fitted), **beside)
    assert [[value.hex() for value in row] for row in p.tolist()] == wanted
    assert isinstance(fitted.rule, Map) == (name in ("class_scores", "kept"))


@pytest.mark.parametrize("name", OLD)
def test_old_files_are_saved_in_the_form_of_today(name, tmp_path):
    path = written(name, tmp_path)
    fitted = cal.load(path)
    cal.save(fitted, path)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert (document["format"], document["version"]) == ("calibrant", 2)
    assert document["map"]["kind"] == fitted.rule.kind
    assert cal.load(path) == fitted
    assert len(list(tmp_path.glob("*.npz"))) == bool(OLD[name][1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 3}, "reads up to 2"),
        ({"rule": None}, "'rule' is missing"),
        ({"rule": {"kind": "magic", "version": 1, "state": {}}}, "unknown kind of map 'magic'"),
        ({"rule": {"kind": "bins", "version": 9, "state": {}}}, "reads up to 1"),
        ({"rule": {"kind": "bins", "version": 1, "state": {}}}, "damaged"),
        ({"rule": {"kind": "class scores", "version": 1, "state": {}}}, "must be an object"),
        ({"classes": [0, 1, 2], "pos_label": None}, "classes must be two labels"),
        ({"provenance": 3}, "'provenance' is missing"),
    ],
)
def test_damaged_old_files_are_refused(change, words, tmp_path):
    path = written("bins", tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change))
    with pytest.raises(cal.errors.InputError, match=re.escape(words)):
        cal.load(path)


def test_inputs_that_an_old_gate_found_useless_may_still_come(tmp_path):
    fitted = cal.load(written("kept", tmp_path))
    p = fitted.calibrate([0.2, 0.5])
    assert np.array_equal(fitted.calibrate([0.2, 0.5], features=[["red", 1.0], ["red", 2.0]]), p)
