"""Folder, names, cases, command line and docs must agree; every method is documented in full."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import calibrant as cal
import calibrant.auto
import calibrant.methods
import calibrant.model
from calibrant.fitting.registry import METHODS
from cases import CASES

PACKAGE = Path(cal.__file__).parent

CALIBRATORS = sorted(
    name
    for name in cal.__all__
    if isinstance(getattr(cal, name), type)
    and issubclass(getattr(cal, name), cal.Calibrator)
    and getattr(cal, name) is not cal.Calibrator
)


#: what sees more than a score: local calibrators, and models
BEYOND = ["ACP", "AdaBoost", "FeatureCalibrator", "SimilarityBinning"]
#: parameters that need not be named
FIRST = {
    "AdaBoost": ("estimator",),
    "CodedCalibrator": ("calibrator", "code", "combine"),
    "CodedClassifier": ("estimator",),
    "MultiLabelCalibrator": ("calibrator",),
    "SegmentedCalibrator": ("calibrator",),
    "SimilarityBinning": ("k",),
    "TopLabelCalibrator": ("calibrator",),
}
#: calibrators of several classes or labels at once
MANY = [
    "CodedCalibrator",
    "CodedClassifier",
    "Dirichlet",
    "EnsembleTemperature",
    "MatrixScaling",
    "MultiLabelCalibrator",
    "StructuredScaling",
    "TopLabelCalibrator",
    "VectorScaling",
]


#: what the calibrators of several classes are built on
BASES = {
    "AffineCalibrator",
    "ColumnsCalibrator",
    "OneScoreOrMany",
    "RidgeCalibrator",
    "VectorCalibrator",
}
#: a calibrator for each part of the rows
PARTS = ["SegmentedCalibrator"]


def classes_of(module):
    """The classes that a module offers: its own, without an underscore."""
    return [
        kind
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and kind.__module__ == module.__name__ and name[0] != "_"
    ]


def in_rooms(*packages):
    """The classes of these packages, by name."""
    return {
        kind.__name__: kind
        for package in packages
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        for kind in classes_of(importlib.import_module(module.name))
    }


def test_every_method_has_a_public_name():
    from sklearn.base import ClassifierMixin

    made = in_rooms(calibrant.methods, calibrant.auto, calibrant.model)
    found = {name for name, kind in made.items() if issubclass(kind, ClassifierMixin)}
    models = {"CalibratedClassifier", "CodedClassifier"}
    assert found - BASES == {*CALIBRATORS, *BEYOND, *MANY, *PARTS, *models}
    assert {*MANY, *models} <= set(cal.__all__)


def test_public_names_of_models_and_local_calibrators():
    assert {*BEYOND, *PARTS} <= {*cal.__all__, *cal.boosting.__all__}


def test_every_method_has_a_case():
    assert {type(case.calibrator).__name__ for case in CASES} == set(CALIBRATORS)


def test_every_method_has_a_name_on_the_command_line():
    assert {name for name, _ in METHODS.values()} == set(CALIBRATORS)


def headings_of(page: Path) -> list[str]:
    return re.findall(r"^#+ .+$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_every_method_has_a_section_in_the_docs(root):
    """A row in the table of methods, which leads to the section or the page with its name."""
    folder = root / "docs" / "understand" / "methods"
    row = re.compile(r'^\| (?:<a id="\w+"></a>)?\[`(\w+)`\]\((\w+\.md)(?:#(\w+))?\)', re.MULTILINE)
    found = row.findall((folder / "index.md").read_text(encoding="utf-8"))
    assert {name for name, _, _ in found} == {*CALIBRATORS, *BEYOND, *MANY, *PARTS}
    for name, page, anchor in found:
        headings = headings_of(folder / page)
        assert any(re.search(rf"\b{name}\b", heading) for heading in headings), (name, page)
        assert not anchor or (anchor == name.lower() and f"### {name}" in headings), (name, page)
    linked = {page for _, page, _ in found} | {"index.md"}
    assert {path.name for path in folder.glob("*.md")} == linked


def test_pages_of_methods_have_the_same_sections(root):
    wanted = {"Idea", "Picture", "Formula", "Cost", "When it fails", "Example"}
    for page in (root / "docs" / "understand" / "methods").glob("*.md"):
        if page.name != "index.md":
            assert wanted <= {heading[3:] for heading in headings_of(page)}, page.name


@pytest.mark.parametrize("name", CALIBRATORS + BEYOND + MANY + PARTS)
def test_docstrings_are_complete_and_in_order(name):
    kind = getattr(cal, name, None) or getattr(cal.boosting, name)
    doc = inspect.getdoc(kind)
    sections = re.findall(
        r"^(Parameters|Attributes|Notes|References|Examples)\n-+$", doc, flags=re.MULTILINE
    )
    order = ["Parameters", "Attributes", "Notes", "References", "Examples"]
    assert sections == [s for s in order if s in sections]
    assert {"Parameters", "Notes", "Examples"} <= set(sections)
    assert re.search(r"\bO\(", doc), "the Notes must give the cost"
    for parameter in inspect.signature(kind).parameters.values():
        plain = parameter.name in FIRST.get(name, ())
        assert plain or parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert re.search(rf"\b{parameter.name}\b", doc), f"{parameter.name} is not documented"


@pytest.mark.parametrize("name", CALIBRATORS)
def test_limits_are_declared_and_kept(name):
    kind = getattr(cal, name)
    own = set(inspect.signature(kind).parameters) - {"pos_label", "classes"}
    assert set(kind._limits) == own
    for parameter in own:
        for wrong in ("no such word", -1, None, [], float("nan")):
            if any(limit.allows(wrong) for limit in kind._limits[parameter]):
                continue
            with pytest.raises(cal.errors.ParameterError, match=rf"{parameter} of {name} must be"):
                kind(**{parameter: wrong}).fit([0.1, 0.9], [0, 1])


def test_fitted_state_is_documented(root):
    """Every name_ attribute that a fit sets is in the class's or the base's docstring."""
    for case in CASES:
        c = type(case.calibrator)(**case.calibrator.get_params()).fit(
            [0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]
        )
        doc = inspect.getdoc(type(c)) + inspect.getdoc(cal.Calibrator)
        for attribute in vars(c):
            if attribute.endswith("_") and not attribute.startswith("_"):
                assert re.search(rf"\b{attribute}\b", doc), f"{attribute} of {type(c).__name__}"


@pytest.mark.parametrize("stub", sorted(PACKAGE.rglob("__init__.pyi")), ids=lambda s: s.parent.name)
def test_stubs_list_what_is_there(stub):
    """A type checker and `lazy_names` read the same names, and each is in its module."""
    name = ".".join(("calibrant", *stub.parent.relative_to(PACKAGE).parts))
    typed = {
        alias.asname: node.module
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    package = importlib.import_module(name)
    assert sorted(typed) == sorted(package.__all__) == dir(package)
    for word, module in typed.items():
        thing = getattr(importlib.import_module(module), word)
        assert getattr(package, word) is thing
        assert inspect.ismodule(thing) or getattr(thing, "__module__", module).startswith(module)


def test_no_two_classes_have_one_name():
    names = [
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted(names) == sorted(set(names))


def test_only_kernels_are_compiled(root):
    """Files of kernels, and one that hands numba to them."""
    package = root / "src" / "calibrant"
    kernels = {*package.rglob("_kernel*.py"), package / "solvers" / "_jit.py"}
    for path in set(package.rglob("*.py")) - kernels:
        text = path.read_text(encoding="utf-8")
        assert "numba" not in re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE), path
        assert "solvers._jit import" not in text, path


def test_no_kernel_calls_one_of_another_file(root):
    """Numba keeps compiled code by the file it is in: what it calls elsewhere would go stale."""
    package = root / "src" / "calibrant"
    for path in package.rglob("_kernel*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        foreign = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("calibrant")
            for alias in node.names
        }
        for kernel in ast.walk(tree):
            marks = getattr(kernel, "decorator_list", [])
            if {"jit", "part"} & {getattr(getattr(m, "func", m), "id", "") for m in marks}:
                body = [name.id for line in kernel.body for name in ast.walk(line)
                        if isinstance(name, ast.Name)]  # fmt: skip
                assert not foreign & set(body), (path, kernel.name)


def test_changelog_names_the_version(root):
    assert f"## {cal.__version__}" in (root / "CHANGELOG.md").read_text(encoding="utf-8")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "BSD-3-Clause"
    core = {re.split(r"[<>=]", need)[0] for need in project["dependencies"]}
    assert core == {"numpy", "scipy", "scikit-learn", "numba", "narwhals"}
