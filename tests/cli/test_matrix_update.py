"""`cudadoctor matrix update`, as it is typed, against a stand-in for everything that it asks.

The first half starts the real program in a checkout whose data lacks the two newest minors of torch, every host being
the stand-in. The second half runs it in this process, on the data as it is, with one thing wrong upstream at a time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
from bench import upstream as bench
from bench.parts import clean_environ
from bench.upstream import Entry, Fault, Upstream, published
from bench.venvs import Venv
from cli_runner import Run

from cudadoctor.matrix.compile import load_toml

ROOT = Path(__file__).resolve().parents[2]
NEWEST = ("2.14", "2.15")


class Checkout:
    """cudadoctor as people have it, with the older data, on a machine whose internet is the stand-in."""

    def __init__(self, folder: Path, upstream: Upstream) -> None:
        self.upstream = upstream
        self.code = folder / "checkout"
        self.data = folder / "data" / "cudadoctor" / "matrix"
        hidden = shutil.ignore_patterns("__pycache__", ".compiled", "compiled")
        for name in ("cudadoctor", "compat"):
            shutil.copytree(ROOT / name, self.code / name, ignore=hidden)
        for minor in NEWEST:
            (self.code / "compat" / "torch" / f"{minor}.toml").unlink()
        self.environment = clean_environ(
            upstream.as_internet(),
            PYTHONPATH=str(self.code),
            XDG_DATA_HOME=str(folder / "data"),
            XDG_CACHE_HOME=str(folder / "cache"),
            PIP_CONFIG_FILE=os.devnull,
        )
        del self.environment["CUDADOCTOR_DATA"]

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.code,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def update(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "cudadoctor", "matrix", "update", *arguments, **environment)

    def releases(self) -> dict[str, dict[str, Any]]:
        """Release -> its row in the user's data."""
        index = json.loads((self.data / "index.json").read_text())
        torch = json.loads((self.data / index["folder"] / "torch.json").read_text())
        return {row["version"]: row for data in torch.values() for row in data["release"]}


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    folder = tmp_path / "upstream"
    folder.mkdir()
    upstream = Upstream(folder, published(ROOT / "compat", without=NEWEST))
    yield Checkout(tmp_path, upstream)
    upstream.close()


# -- the two newest minors, from what is to be seen

# Columns that nobody can see upstream, and what stands there instead.
NOT_SEEN_OF_A_RELEASE = {
    "source": "names the day of the update",
    "checked": "the day of the update",
    "note": "what a person has found out about the release",
}
NOT_SEEN_OF_A_BUILD = {
    "listed": "names the page on which the wheel was seen, not the older sources",
    "archs": "names torch's own table, not the build scripts",
    "checked": "the day of the update",
    "download_mib": "the size of everything that the build requires: another script adds it up",
    "sizes": "the source of it",
    "verified_in_binary": "needs --binaries: some 10 MB for each build",
    "pythons_inferred": "stood there while the very build had not been seen",
}
WINDOWS_LIST_IS_A_GUESS = "archs_guessed"  # torch's table is of the Linux builds; Windows' lists are carried over


def shipped() -> dict[str, dict[str, Any]]:
    rows = (load_toml(str(ROOT / "compat" / "torch" / f"{minor}.toml"))["release"] for minor in NEWEST)
    return {row["version"]: row for release in rows for row in release}


def by_way(row: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(build["variant"], build["platform"]): build for build in row["builds"]}


@pytest.mark.once
def test_a_fresh_update_reproduces_the_rows_of_the_two_newest_minors(checkout: Checkout) -> None:
    done = checkout.update()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].startswith("13 builds of torch 2.14.0, 13 builds of torch 2.14.1, 6 builds of")
    found = checkout.releases()
    for version, expected in shipped().items():
        row = found[version]
        for column in {*expected, *row} - {"builds", *NOT_SEEN_OF_A_RELEASE}:
            assert row.get(column) == expected.get(column), (version, column)
        builds, seen = by_way(row), {way for way, item in by_way(expected).items() if item.get("seen", True)}
        # What is only announced is on no page.
        assert set(builds) == seen, version
        for way in seen:
            build, wanted = builds[way], by_way(expected)[way]
            is_guess = way[0] != "cpu" and way[1].startswith("windows")
            for column in {*build, *wanted} - {WINDOWS_LIST_IS_A_GUESS, *NOT_SEEN_OF_A_BUILD}:
                assert build.get(column) == wanted.get(column), (version, way, column)
            assert build.get(WINDOWS_LIST_IS_A_GUESS, False) is is_guess, (version, way)


def test_the_next_run_of_any_command_has_the_new_rows_and_a_second_update_finds_nothing(checkout: Checkout) -> None:
    ask = (
        "from cudadoctor.matrix import load_matrix; m = load_matrix(); r = m.torch_release('2.15.0'); "
        "print(m.revision, m.origin.kind, r and r.variant('cu132').build('linux-x86_64').sass)"
    )
    before = checkout.run("-c", ask).stdout.split()
    assert before[1:] == ["shipped", "None"]
    assert checkout.update().returncode == 0
    after = checkout.run("-c", ask).stdout
    assert after.startswith(before[0] + "+") and " updated ('75', '80', '86', '90', '100', '120')" in after
    asked = len(checkout.upstream.requests)
    again = checkout.update()
    assert again.returncode == 0 and again.stdout.startswith("up to date: nothing newer was found\n")
    # Whatever has not changed came out of the cache.
    assert all(request.endswith(" 304") for request in checkout.upstream.requests[asked:])
    assert checkout.run("-c", ask, CUDADOCTOR_DATA="shipped").stdout.split() == before
    assert checkout.run("-c", ask, CUDADOCTOR_DATA="").stdout.split() == before
    back = checkout.update("--remove")
    assert back.returncode == 0 and back.stdout.startswith("removed the update; the shipped data ")
    assert checkout.run("-c", ask).stdout.split() == before
    assert not checkout.data.exists()
    assert checkout.update("--remove").stdout.startswith("there is no update to remove")


@pytest.mark.once
def test_a_dry_run_says_it_and_writes_nothing(checkout: Checkout) -> None:
    done = checkout.update("--dry-run", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["schema"] == "cudadoctor.matrix-update/1" and document["verdict"] == "would-update"
    assert [change["subject"] for change in document["changes"] if change["kind"] == "release"] == [
        "torch 2.14.0",
        "torch 2.14.1",
        "torch 2.15.0",
    ]
    assert document["message"].endswith("would be new") and not checkout.data.exists()


@pytest.mark.once
def test_with_binaries_the_lists_are_read_from_the_builds_themselves(checkout: Checkout) -> None:
    assert checkout.update("--binaries").returncode == 0
    found = checkout.releases()
    for version, expected in shipped().items():
        for way, wanted in by_way(expected).items():
            if wanted.get("verified_in_binary"):
                build = by_way(found[version])[way]
                assert build["verified_in_binary"] and build["sass"] == wanted["sass"]


@pytest.mark.once
def test_the_index_of_pips_own_settings_is_asked(checkout: Checkout, venv_with: Callable[..., Venv]) -> None:
    venv = venv_with(pip=True)
    mirror = checkout.upstream.simple.replace("http://", "http://me:s3cret@")
    (venv.root / "pip.conf").write_text(f"[global]\nindex-url = {mirror}\n")
    environment = {name: value for name, value in checkout.environment.items() if name != "PIP_CONFIG_FILE"}
    checkout.environment = environment
    done = checkout.update("--python", venv.python)
    assert (done.returncode, done.stderr) == (0, "") and "2.15.0" in checkout.releases()
    # Without a proxy in between a request has no host.
    assert "/simple/torch/" in checkout.upstream.requests
    assert ("/simple/torch/", "Basic bWU6czNjcmV0") in checkout.upstream.authorizations
    assert not any(path.startswith("/whl/") for path, _ in checkout.upstream.authorizations)
    kept = [file for file in (checkout.data, checkout.data.parents[2] / "cache") for file in file.rglob("*")]
    assert kept and not any(b"s3cret" in file.read_bytes() for file in kept if file.is_file())
    checkout.upstream.faults["/simple/"] = Fault(bench.status(500))
    failed = checkout.update("--python", venv.python)
    assert failed.returncode == 2 and "s3cret" not in failed.stderr + failed.stdout


@pytest.mark.once
def test_metadata_beside_the_wheels_saves_looking_into_them(checkout: Checkout) -> None:
    checkout.upstream.pages.metadata = True
    assert checkout.update().returncode == 0
    asked = [request for request in checkout.upstream.requests if "torchvision-" in request]
    assert asked and all(request.endswith(".whl.metadata") for request in asked)
    assert checkout.releases()["2.15.0"]["companions"]["torchvision"] == "0.29.2"


@pytest.mark.once
def test_an_index_that_knows_only_html_is_enough_for_builds_but_has_no_dates(checkout: Checkout) -> None:
    checkout.upstream.faults["/simple/torch/"] = Fault(lambda handler: handler.answer(200, *_html_of(handler)))
    done = checkout.update()
    assert done.returncode == 0
    assert "torch 2.15.0: left out, the default index names no date" in " ".join(done.stdout.split())


def _html_of(handler: Any) -> tuple[str, bytes]:
    found: tuple[str, bytes] = handler._upstream.content(handler.path_only, "text/html")
    return found


def test_two_at_once_leave_one_whole_update(checkout: Checkout) -> None:
    both = [checkout.start("-m", "cudadoctor", "matrix", "update") for _ in range(2)]
    for process in both:
        _, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, "")
    assert "2.15.0" in checkout.releases()
    ask = "from cudadoctor.matrix import load_matrix; print(load_matrix().origin)"
    assert "'updated'" in checkout.run("-c", ask).stdout


# -- one thing wrong at a time


class Site:
    """The stand-in, the user's data folder and the running of the command in this process."""

    def __init__(self, upstream: Upstream, data: Path, run: Run) -> None:
        self.upstream, self.data, self._run = upstream, data, run

    def update(self, *arguments: str) -> Any:
        """Against the stand-in as the internet, its default index named."""
        return self._run("matrix", "update", "--index-url", self.upstream.simple, "--timeout", "20", *arguments)


@pytest.fixture
def site(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "upstream"
    folder.mkdir()
    upstream = Upstream(folder, published(ROOT / "compat", listing=False))
    for name, value in upstream.as_internet().items():
        monkeypatch.setenv(name, value)
    data = tmp_path / "data"
    monkeypatch.setenv("CUDADOCTOR_DATA", str(data))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield Site(upstream, data, run)
    upstream.close()


def test_nothing_new_is_said_and_counts_as_checked(site: Site) -> None:
    done = site.update()
    assert (done.exit, done.err) == (0, "")
    assert done.out.splitlines()[0] == "up to date: nothing newer was found" or "inferred" in done.out
    assert json.loads((site.data / "matrix" / "index.json").read_text())["updated"]


ROOT_PAGE, PAGE, DEFAULT = "/whl/", "/whl/cu130/torch/", "/simple/torch/"
DRIVERS, LISTING = "/datacenter/tesla/drivers/", "/compute/nvidia-driver/redist/"

ABOUT_US = "<!DOCTYPE html><html><body><a href='/about'>About us</a></body></html>"
NO_TORCH = '<!DOCTYPE html><html><body><a href="numpy-2.0-cp312-cp312-win_amd64.whl">numpy</a></body></html>'

# What is wrong -> where, how, and what is said of it.
FAULTS = {
    "sign-in page for the root": (ROOT_PAGE, bench.SIGN_IN, "a sign-in page of the network?"),
    "sign-in page for a variant": (PAGE, bench.SIGN_IN, "a sign-in page of the network?"),
    "sign-in page for the default index": (DEFAULT, bench.SIGN_IN, "a sign-in page of the network?"),
    "sign-in page for the drivers": (DRIVERS, bench.SIGN_IN, "not NVIDIA's list of driver releases"),
    "sign-in page for the list of drivers": (LISTING, bench.SIGN_IN, "lists no redistrib JSON"),
    "another page": (PAGE, bench.html_page(ABOUT_US), "not a page of a package index: it links no file"),
    "an index without a wheel of torch": (PAGE, bench.html_page(NO_TORCH), "no wheel of torch is on this page"),
    "the root is refused": (ROOT_PAGE, bench.status(403), "no index is there (403 or 404)"),
    "no torch on the default index": (DEFAULT, bench.status(404), "this index has no torch"),
    "no list of drivers": (DRIVERS, bench.status(404), "it is not there; --without drivers leaves NVIDIA's lists out"),
    "500 for good": (PAGE, bench.status(500), "the server answered 500"),
    "the page is cut off": (PAGE, bench.cut_off, "cut off|broke off"),
    "the connection breaks": (PAGE, bench.reset, "broke off|no connection through the proxy"),
    "the page has no end": (PAGE, bench.endless, "more than 32 MiB, which no such page has"),
    "the page is huge": (PAGE, bench.huge, "more than 32 MiB, which no such page has"),
    "a picture": (PAGE, bench.html_page("GIF89a", "image/gif"), "it is image/gif, not a page of a package index"),
    "JSON that is none": (
        DEFAULT,
        bench.html_page("{", bench.SIMPLE_JSON),
        "not a page of a package index: it is no JSON",
    ),
    "https that leads to http": (PAGE, bench.downgrade, "leads away from https"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_be_fetched_is_one_sentence_and_changes_nothing(site: Site, fault: str) -> None:
    place, answer, words = FAULTS[fault]
    site.upstream.faults[place] = Fault(answer)
    done = site.update()
    assert (done.exit, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith("cudadoctor: error: http") and any(word in line for word in words.split("|")), line
    assert not site.data.exists()


def test_a_server_that_says_nothing_is_waited_for_no_longer_than_allowed(site: Site) -> None:
    site.upstream.faults[PAGE] = Fault(bench.silence)
    done = site.update("--timeout", "2")
    assert done.exit == 2 and not site.data.exists()
    assert "no answer in time" in done.err or "not done within" in done.err or "for everything" in done.err


def test_a_server_that_trickles_is_neither(site: Site) -> None:
    site.upstream.faults[ROOT_PAGE] = Fault(bench.trickle)
    done = site.update("--timeout", "2")
    assert done.exit == 2 and not site.data.exists()
    assert len(done.err.splitlines()) == 1


def test_a_certificate_that_nobody_vouches_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    done = site.update()
    assert done.exit == 2 and "its certificate is not accepted" in done.err
    assert "REQUESTS_CA_BUNDLE" in done.err and not site.data.exists()


def test_nobody_at_home(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    done = site.update()
    assert done.exit == 2 and "no connection through the proxy" in done.err


def test_what_passes_is_got_over(site: Site) -> None:
    site.upstream.faults[PAGE] = Fault(bench.status(503), times=1)
    site.upstream.faults[DEFAULT] = Fault(bench.cut_off, times=1)
    done = site.update()
    assert (done.exit, done.err) == (0, "")


def test_a_page_that_lost_half_its_wheels_is_refused(site: Site) -> None:
    page = site.upstream.pages.pages["cu126"]
    del page[: len(page) // 2]
    done = site.update()
    assert done.exit == 1 and done.err == ""
    first = done.out.splitlines()[0]
    assert first.startswith("refused: the page of cu126 has ") and "nothing was changed" in done.out
    assert not site.data.exists()
    document = json.loads(site.update("--format", "json").out)
    assert document["verdict"] == "refused" and len(document["problems"]) == 1 and document["changes"] == []


def test_a_default_index_that_lost_half_is_refused_too(site: Site) -> None:
    page = site.upstream.pages.pages["default"]
    del page[len(page) // 3 :]
    done = site.update()
    assert done.exit == 1 and done.out.startswith("refused: the default index has ")


def test_a_single_wheel_that_is_gone_is_no_reason(site: Site) -> None:
    del site.upstream.pages.pages["cu126"][0]
    assert site.update().exit == 0


def test_a_variant_without_a_page_stays_as_it_is(site: Site) -> None:
    site.upstream.faults[PAGE] = Fault(bench.status(403))
    done = site.update()
    assert (done.exit, done.err) == (0, "")
    torch = next((site.data / "matrix").glob("*/torch.json"))
    rows = [row for data in json.loads(torch.read_text()).values() for row in data["release"]]
    assert any(build["variant"] == "cu130" for row in rows for build in row["builds"])


def test_a_refused_or_failed_update_leaves_the_one_before(site: Site) -> None:
    assert site.update().exit == 0
    before = {file: file.read_bytes() for file in site.data.rglob("*.json")}
    page = site.upstream.pages.pages["cu126"]
    del page[: len(page) // 2]
    assert site.update().exit == 1
    site.upstream.faults[ROOT_PAGE] = Fault(bench.status(500))
    assert site.update().exit == 2
    assert {file: file.read_bytes() for file in site.data.rglob("*.json")} == before


def test_candidates_withdrawn_wheels_and_other_variants_are_left_out(site: Site) -> None:
    pages = site.upstream.pages
    linux = "manylinux_2_28_x86_64"
    pages.add("cu132", Entry("torch", "2.99.0rc1", "cu132", "cp312", linux))
    pages.add("cu132", Entry("torch", "2.99.1.dev20261120", "cu132", "cp312", linux))
    pages.add("cu132", Entry("torch", "2.14.1", "cu132.with.pypi.cudnn", "cp39", linux))
    pages.add("cu132", Entry("torch", "2.3.1", None, "cp312", linux))
    pages.add("default", Entry("torch", "2.98.0", None, "cp312", linux, "2026-12-01T00:00:00Z", ">=3.11", "broken"))
    done = site.update()
    assert done.exit == 0
    assert "2.98" not in done.out and "2.99" not in done.out
    text = next((site.data / "matrix").glob("*/torch.json")).read_text()
    assert "2.98.0" not in text and "2.99" not in text and "with.pypi" not in text


def test_what_is_not_yet_on_the_default_index_waits(site: Site) -> None:
    site.upstream.pages.add("cu132", Entry("torch", "2.99.0", "cu132", "cp312", "manylinux_2_28_x86_64"))
    done = site.update()
    assert done.exit == 0
    assert "torch 2.99.0: left out, it is on PyTorch's index and not yet on the default index" in " ".join(
        done.out.split()
    )


def test_only_drivers_or_only_torch(site: Site) -> None:
    site.upstream.pages.releases["999"] = {
        "type": "production branch",
        "driver_info": [{"release_version": "999.10.02", "release_date": "2026-12-01"}],
    }
    site.upstream.pages.add_driver("999.10.02", "99.1", "2026-12-01")
    assert "R999" not in site.update("--without", "drivers", "--dry-run").out
    assert not any("tesla" in request for request in site.upstream.requests)
    site.upstream.requests.clear()
    done = site.update("--without", "torch")
    assert done.out.startswith("1 driver branch is new\n")
    assert "R999: new branch, serves CUDA 99.1, from 999.10.02" in done.out
    assert not any("/whl/" in request or "/simple/" in request for request in site.upstream.requests)


def test_a_mirror_of_pytorchs_index(site: Site) -> None:
    assert site.update("--mirror", site.upstream.url + "/whl").exit == 0
    assert "/whl/cu130/torch/" in site.upstream.requests
    assert not any("download.pytorch.org" in request for request in site.upstream.requests)


# -- where it is kept


@pytest.mark.parametrize("value", ["", "shipped"])
def test_where_updates_are_ruled_out_none_is_fetched(site: Site, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CUDADOCTOR_DATA", value)
    done = site.update()
    assert done.exit == 2 and "CUDADOCTOR_DATA says that only the shipped data counts" in done.err
    assert not site.upstream.requests


def test_a_folder_that_cannot_be_written_is_one_sentence(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.data.write_text("a file")
    done = site.update()
    assert done.exit == 2 and done.out == ""
    assert done.err.startswith("cudadoctor: error: cannot write ") and len(done.err.splitlines()) == 1


def test_what_earlier_updates_left_is_swept_away(site: Site) -> None:
    assert site.update().exit == 0
    (old,) = (path for path in (site.data / "matrix").iterdir() if path.is_dir())
    young = site.data / "matrix" / "young"
    young.mkdir()
    os.utime(old, (1, 1))
    assert site.update().exit == 0
    assert not old.exists() and young.exists(), "a young one may be another update's that is not done"


@pytest.mark.parametrize(
    "command",
    [
        "check",
        "fix",
        "fix --print --gpu V100",
        "matrix show",
        "matrix verify",
        "matrix query --torch 2.8",
        "matrix query --gpu V100",
        "matrix query --cuda 12.8",
        "matrix update --dry-run",
    ],
)
@pytest.mark.parametrize("broken", [b'{"release": 5}', b"[]"])
def test_an_update_that_is_not_what_its_writer_meant_names_the_way_out(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, broken: bytes
) -> None:
    import zlib

    import cudadoctor.matrix.load as loading

    shipped = loading.load_shipped()
    name, place = "0" * 16, tmp_path / "matrix"
    (place / name).mkdir(parents=True)
    for section in loading.UPDATED_SECTIONS:
        (place / name / f"{section}.json").write_bytes(broken)
    vouched = {"size": len(broken), "crc32": zlib.crc32(broken)}
    index = {"format": loading.UPDATE_FORMAT, "schema": 1, "based_on": shipped.revision, "folder": name}
    index |= {"updated": "2026-12-05T10:00:00Z", "revision": f"{shipped.revision}+20261205"}
    index |= {"files": dict.fromkeys(loading.UPDATED_SECTIONS, vouched)}
    (place / "index.json").write_text(json.dumps(index))
    monkeypatch.setenv("CUDADOCTOR_DATA", str(tmp_path))
    monkeypatch.setattr(loading, "_loaded", None)
    done = run(*command.split())
    assert (done.exit, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert done.err.startswith("cudadoctor: error: The compatibility data is damaged (")
    assert done.err.endswith("): run `cudadoctor matrix update --remove`\n")


@pytest.mark.parametrize("what", ["index.json", "."])
def test_an_update_whose_place_holds_something_else_can_be_removed(site: Site, what: str) -> None:
    place = site.data / "matrix"
    if what == ".":
        site.data.mkdir()
        place.write_text("a file where the folder would be")
    else:
        (place / what / "inner").mkdir(parents=True)
    done = site.update("--remove")
    assert (done.exit, done.err) == (0, "") and not place.exists()
    assert done.out.startswith("removed the update; the shipped data ")
