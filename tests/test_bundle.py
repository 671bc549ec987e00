"""All modules of an installed package in one file: the same modules, and nothing stale."""

from __future__ import annotations

import json
import marshal
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Callable

import pytest

import cudadoctor
from cudadoctor import bundle

PACKAGE = Path(cudadoctor.__file__).parent
MINUTE = 60

# Asked in a fresh interpreter: which modules came from the bundle, and which did not.
ASK = """
import json, sys
sys.path.insert(0, sys.argv[1])
from cudadoctor.rules import load_rules, rule_files
load_rules()
import cudadoctor.cli._checking
from_bundle = {name: type(module.__spec__.loader).__name__ == "Bundle"
               for name, module in sys.modules.items() if name.startswith("cudadoctor.")}
print(json.dumps({"bundled": from_bundle, "rules": list(rule_files())}))
"""


@pytest.fixture(scope="session")
def bundle_bytes() -> bytes:
    return bundle.build(str(PACKAGE))


@pytest.fixture
def site(tmp_path: Path, bundle_bytes: bytes) -> Path:
    """A folder with the package as an installer leaves it."""
    folder = tmp_path / "site"
    without = shutil.ignore_patterns("__pycache__", "compiled")
    shutil.copytree(PACKAGE, folder / "cudadoctor", ignore=without, copy_function=shutil.copy)  # the time is now
    shutil.copytree(PACKAGE.parent / "compat", folder / "compat", ignore=shutil.ignore_patterns(".compiled"))
    (folder / "cudadoctor" / bundle.FOLDER).mkdir()
    bundle_of(folder).write_bytes(bundle_bytes)
    return folder


def bundle_of(site: Path) -> Path:
    return site / "cudadoctor" / bundle.FOLDER / bundle.file_name()


def ran(site: Path, code: str, *options: str, python: str = sys.executable) -> str:
    command = [python, "-B", "-I", *options, "-c", code, str(site)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(site: Path, *options: str) -> Any:
    return json.loads(ran(site, ASK, *options))


def test_a_checkout_has_no_bundle() -> None:
    assert not (PACKAGE / bundle.FOLDER).exists()
    assert not any(isinstance(finder, bundle.Bundle) for finder in sys.meta_path)


def test_the_code_is_what_python_compiles(site: Path) -> None:
    """Every module's, byte for byte but for the file's name: so nothing can come out otherwise."""
    code = """
import importlib, marshal, os, sys, types
site = sys.argv[1]
sys.path.insert(0, site)
import cudadoctor
finder = sys.meta_path[0]
assert type(finder).__name__ == "Bundle"
count = 0
for folder, _, files in os.walk(os.path.join(site, "cudadoctor")):
    for file in files if "__init__.py" in files else ():  # a recipe's is no module
        path = os.path.join(folder, file)
        name = os.path.relpath(path, site)[:-3].replace(os.sep, ".")
        name = name[:-9] if name.endswith(".__init__") else name
        if not file.endswith(".py") or name in ("cudadoctor", "cudadoctor.__main__", "cudadoctor.bundle"):
            continue
        spec = finder.find_spec(name)
        assert spec is not None, name
        found = finder._codes.pop(name)
        with open(path, "rb") as stream:
            assert found == compile(stream.read(), path, "exec", dont_inherit=True), name
        assert found.co_filename == path == spec.origin
        count += 1
print(count)
"""
    expected = [
        path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE and (path.parent / "__init__.py").exists()
    ]
    top = [path for path in PACKAGE.glob("*.py") if path.stem not in ("__init__", "__main__", "bundle")]
    assert int(ran(site, code)) == len(expected) + len(top)


def test_everything_comes_from_it(site: Path) -> None:
    found = asked(site)
    apart = [name for name, bundled in found["bundled"].items() if not bundled]
    assert apart == ["cudadoctor.bundle"]
    assert found["rules"] == sorted(found["rules"]) and len(found["rules"]) > 50


def test_modules_look_as_ordinary_ones(site: Path) -> None:
    code = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
if len(sys.argv) > 2:
    import cudadoctor
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "Bundle"]
out = {}
for name in ("cudadoctor.rules", "cudadoctor.rules.cd303_torch_needs_newer_driver", "cudadoctor.diagnose"):
    module = importlib.import_module(name)
    out[name] = [module.__name__, module.__file__, module.__package__, module.__doc__, module.__spec__.origin,
                 list(getattr(module, "__path__", [])), list(module.__spec__.submodule_search_locations or [])]
    assert getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2]) is module
print(json.dumps(out))
"""
    assert ran(site, code) == ran(site, code.replace("len(sys.argv) > 2", "True"))


def test_tracebacks_show_the_installed_file(site: Path) -> None:
    code = """
import sys, traceback
sys.path.insert(0, sys.argv[1])
from cudadoctor.rules import rule_module
try:
    rule_module("CD303").judge(None)
except AttributeError:
    print(traceback.format_exc())
"""
    shown = ran(site, code)
    file = site / "cudadoctor" / "rules" / "cd303_torch_needs_newer_driver.py"
    assert f'File "{file}", line ' in shown and "build = case.derived(torch_build)" in shown


def rule_file(site: Path) -> Path:
    return site / "cudadoctor" / "rules" / "cd303_torch_needs_newer_driver.py"


def edited(site: Path) -> None:
    path = rule_file(site)
    path.write_text(path.read_text("utf-8") + "# edited\n", "utf-8")


def edited_to_the_same_size(site: Path) -> None:
    path = rule_file(site)
    path.write_text(path.read_text("utf-8").replace("too old for it", "too OLD for it"), "utf-8")
    later = bundle_of(site).stat().st_mtime + MINUTE
    os.utime(path, (later, later))


def replaced_by_an_older_one(site: Path) -> None:
    """As `cp -p`, `rsync -a` and `tar` lay files down."""
    path = rule_file(site)
    path.write_text(path.read_text("utf-8").replace("too old for it", "too OLD for it"), "utf-8")
    earlier = bundle_of(site).stat().st_mtime - MINUTE
    os.utime(path, (earlier, earlier))


@pytest.mark.parametrize("edit", [edited, edited_to_the_same_size, replaced_by_an_older_one])
def test_a_module_that_was_edited_is_read_anew(site: Path, edit: Callable[[Path], None]) -> None:
    edit(site)
    bundled = asked(site)["bundled"]
    assert not bundled["cudadoctor.rules.cd303_torch_needs_newer_driver"]
    assert bundled["cudadoctor.rules.cd302_cpu_only_torch"]


def test_a_bundle_of_another_version_is_none(site: Path) -> None:
    path = site / "cudadoctor" / "__init__.py"
    path.write_text(path.read_text("utf-8").replace('__version__ = "', '__version__ = "9.'), "utf-8")
    assert not any(asked(site)["bundled"].values())


def test_an_installer_may_take_a_few_seconds(site: Path) -> None:
    written = bundle_of(site).stat().st_mtime
    for path, later in ((rule_file(site), 5), (site / "cudadoctor" / "model" / "fact.py", -5)):
        os.utime(path, (written + later, written + later))
    bundled = asked(site)["bundled"]
    assert bundled["cudadoctor.rules.cd303_torch_needs_newer_driver"] and bundled["cudadoctor.model.fact"]


def test_a_rule_that_was_added_or_taken_away_counts(site: Path) -> None:
    here = rule_file(site)
    here.with_name("cd999_site_rule.py").write_text(here.read_text("utf-8").replace("CD303", "CD999"), "utf-8")
    here.unlink()
    found = asked(site)
    assert "CD999" in found["rules"] and "CD303" not in found["rules"]
    assert found["bundled"]["cudadoctor.rules.cd999_site_rule"] is False


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def cut_short(data: bytes) -> bytes:
    return data[:10]


def of_another_python(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def of_no_table(data: bytes) -> bytes:
    head = marshal.dumps([1, 2])
    return data[:4] + len(head).to_bytes(4, "little") + head


def of_garbage_codes(data: bytes) -> bytes:
    start = 8 + int.from_bytes(data[4:8], "little")
    return data[:start] + bytes(len(data) - start)


def of_another_order(data: bytes) -> bytes:
    """The table names the code of one module as another's."""
    start = 8 + int.from_bytes(data[4:8], "little")
    version, packed, table = marshal.loads(data[8:start])
    names = sorted(name for name, entry in table.items() if not entry[3])
    turned = {name: table[other][:2] + table[name][2:] for name, other in zip(names, [*names[1:], names[0]])}
    head = marshal.dumps((version, packed, {**table, **turned}))
    return data[:4] + len(head).to_bytes(4, "little") + head + data[start:]


DAMAGE = [cut, cut_short, of_another_python, of_another_order, of_no_table, of_garbage_codes, lambda data: b""]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_damaged_bundle_costs_time_only(site: Path, damage: Callable[[bytes], bytes]) -> None:
    whole = asked(site)
    path = bundle_of(site)
    path.write_bytes(damage(path.read_bytes()))
    found = asked(site)
    assert found["rules"] == whole["rules"] and found["bundled"].keys() == whole["bundled"].keys()
    assert not all(found["bundled"].values())


def test_where_files_cannot_be_read_in_pieces(site: Path) -> None:
    """Windows: the whole bundle is read, and an edited module is noticed all the same."""
    edited(site)
    bundled = json.loads(ran(site, "import os; del os.pread\n" + ASK))["bundled"]
    apart = {name for name, from_bundle in bundled.items() if not from_bundle}
    assert apart == {"cudadoctor.bundle", "cudadoctor.rules.cd303_torch_needs_newer_driver"}


def test_without_asserts_it_is_not_used(site: Path) -> None:
    assert not any(asked(site, "-O")["bundled"].values())


@pytest.mark.parametrize("with_bundle", [True, False])
def test_a_zip_file_is_a_package_too(site: Path, with_bundle: bool, tmp_path: Path) -> None:
    archive = tmp_path / "cudadoctor.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for path in sorted(site.rglob("*")):
            if with_bundle or path.suffix != ".bin":
                zipped.write(path, path.relative_to(site))
    found = asked(archive)
    assert found["rules"] == asked(site)["rules"]
    assert found["bundled"]["cudadoctor.rules.cd303_torch_needs_newer_driver"] is with_bundle


VERDICTS = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import load_matrix
from cudadoctor.probes.examine import examine
from cudadoctor.system.replay import ReplaySystem
from cudadoctor.plan import make_plan
for folder in {folders!r}:
    facts = examine(ReplaySystem(folder))
    report = diagnose(facts, load_matrix())
    print(folder, report.root_causes, make_plan(report, load_matrix()).steps)
    for outcome in report.outcomes:
        print(outcome)
"""


def test_every_recorded_machine_gets_the_same_verdict(site: Path) -> None:
    """The same outcomes in the same order and the same plan: with the bundle, without it, and read from a checkout."""
    folders = [str(path.parent) for path in sorted((Path(__file__).parent / "machines").glob("*/machine.json"))]
    assert len(folders) > 20
    code = VERDICTS.format(folders=folders)
    with_bundle = ran(site, code)
    bundle_of(site).unlink()
    assert with_bundle == ran(site, code)
    assert with_bundle.count("Outcome(") > 50 * len(folders)
