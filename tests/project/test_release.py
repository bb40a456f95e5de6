"""What a release says of itself in several places is the same in all of them."""

from __future__ import annotations

import re
import runpy
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import calibrant as cal

#: extras that users install; those of the tests may ask for more
FOR_USERS = ("cli", "onnx", "features")
#: pinned in the lowest environment for the tests' sake, and no bounds of ours
BESIDE = {"click"}


@pytest.fixture(scope="module")
def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def lowest(root):
    """The pins of the environment of lowest versions."""
    if not (root / ".github").is_dir():
        pytest.skip("a source archive has no .github")
    text = (root / ".github" / "constraints-lowest.txt").read_text(encoding="utf-8")
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return {
        canonicalize_name(name): Version(version)
        for name, version in (line.split("==") for line in lines if line)
    }


def bounds(lines):
    """The lower bound of each requirement on another package."""
    found = {}
    for need in map(Requirement, lines):
        if need.name == "calibrant":
            continue
        (least,) = [one.version for one in need.specifier if one.operator == ">="]
        found[canonicalize_name(need.name)] = Version(least)
    return found


def test_every_bound_of_users_is_in_the_lowest_environment(project, lowest):
    extras = project["optional-dependencies"]
    wanted = bounds(project["dependencies"]) | {
        name: least for extra in FOR_USERS for name, least in bounds(extras[extra]).items()
    }
    assert {name: lowest.get(name) for name in wanted} == wanted


def test_the_lowest_environment_pins_bounds_and_nothing_else(project, lowest):
    extras = project["optional-dependencies"]
    known = [
        bounds(project["dependencies"]),
        *map(bounds, (*map(extras.get, FOR_USERS), extras["test"])),
    ]
    for name, version in lowest.items():
        if name in BESIDE:
            continue
        assert version in {found[name] for found in known if name in found}, name


def test_no_upper_bounds(project):
    """They make a release unusable beside the next version of something else."""
    extras = project["optional-dependencies"]
    needs = [*project["dependencies"], *(need for extra in FOR_USERS for need in extras[extra])]
    for need in map(Requirement, needs):
        assert {one.operator for one in need.specifier} == {">="}, need


def test_versions_of_python(root, project):
    said = re.findall(r":: (3\.\d+)$", "\n".join(project["classifiers"]), flags=re.MULTILINE)
    assert project["requires-python"] == f">={said[0]}"
    flow = root / ".github" / "workflows" / "tests.yml"
    if flow.exists():
        (tried,) = re.findall(r"python: \[(.*)\]", flow.read_text(encoding="utf-8"))
        assert re.findall(r"[\d.]+", tried) == said


def test_one_version(root):
    cited = (root / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {cal.__version__}\n" in cited
    log = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", log, flags=re.MULTILINE)[0] == cal.__version__
    recipe = root / "recipe" / "recipe.yaml"
    if recipe.exists():
        assert f'version: "{cal.__version__}"' in recipe.read_text(encoding="utf-8")


#: conda's own names of packages
CONDA = {"python-duckdb": "duckdb", "matplotlib-base": "matplotlib"}


@pytest.mark.parametrize(("part", "extras"), [("run", ()), ("run_constraints", FOR_USERS)])
def test_the_recipe_asks_for_what_the_wheel_asks_for(root, project, part, extras):
    """Dependencies are asked for; what extras bring must fit where it is there."""
    recipe = root / "recipe" / "recipe.yaml"
    if not recipe.exists():
        pytest.skip("a source archive has no recipe")
    lines = recipe.read_text(encoding="utf-8").partition(f"\n  {part}:\n")[2].splitlines()
    asked = {}
    for line in lines:
        need = re.fullmatch(r"    - (\S+) >=(\S+)", line)
        if need is None:
            break
        asked[CONDA.get(need[1], canonicalize_name(need[1]))] = Version(need[2])
    if not extras:
        assert asked.pop("python") == Version(project["requires-python"].removeprefix(">="))
    optional = project["optional-dependencies"]
    needs = [project["dependencies"]] if not extras else [optional[extra] for extra in extras]
    assert asked == {name: least for one in needs for name, least in bounds(one).items()}


def test_failures_that_the_lowest_versions_explain_are_tests(root):
    """A test that was renamed would be run there, and fail without its reason."""
    plugin = root / ".github" / "lowest_versions.py"
    if not plugin.exists():
        pytest.skip("a source archive has no .github")
    expected = runpy.run_path(str(plugin))["EXPECTED"]
    named = [test for tests in expected.values() for test in tests]
    assert len(named) == len(set(named)) > 0
    for test in named:
        path, _, name = test.partition("::")
        code = (root / path).read_text(encoding="utf-8")
        assert f"\ndef {name.partition('[')[0]}(" in code, test
    flow = (root / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert "-p lowest_versions" in flow
    assert "--deselect" not in flow
    assert " -k " not in flow


def test_addresses(root, project):
    home = "https://github.com/calibrant/calibrant"
    assert project["urls"]["Source"] == home
    assert project["urls"]["Documentation"] == "https://calibrant.github.io/calibrant"
    for name in ("SECURITY.md", "CITATION.cff"):
        assert home in (root / name).read_text(encoding="utf-8")


def test_the_lists_of_names_are_typed(root):
    """The wheel has the stubs, beside py.typed."""
    package = root / "src" / "calibrant"
    assert (package / "py.typed").exists()
    assert (package / "__init__.pyi").exists()
