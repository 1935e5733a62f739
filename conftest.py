"""The parts that the tests of every room share: the guest's image, who runs beside whom, which
skips may be.

The cache: each process of the tests has one of its own, with results and work of its own; kernels
and User Mode Linux are the user's. Images and snapshots are shared by all the processes of one
`pytest -n`: those that the user's cache has, as `make setup` built them from this source, and
others are built once, under the cache's own locks. tests/command/test_same_bytes.py and
test_wheel.py build all anew.

The groups: `pytest -n 3` gives a group to one process, in order. Every file is a group; those that
trace this machine's disks or measure by the clock on the wall are one, so that no two of them ever
run at once.

The examples that hypothesis draws are the same in every run, and none has a time limit: a test
fails for what was changed, and not by chance. `--hypothesis-profile default` draws others.

The full tier: what is in tests/full, or marked `full`, is run by `make test-all`.

The skips: where JOJ_SKIPS is `listed` (make test as root), and in CI, a skip that tests/skips.toml
does not list is a failure.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from jojlab.foundation.cache import Cache

ROOT = Path(__file__).parent
FULL = "tests/full/"
BY_THE_CLOCK = ("tests/live/", "bench/", "tests/guest/test_wall_clock.py")
# Those that take longest begin first, so that all processes end at about the same time.
FIRST = (*BY_THE_CLOCK, "tests/guest/", "tests/command/")
FROM_THE_USER = ("packages", "kernels", "vega", "user-mode")
OF_ALL_PROCESSES = ("modules", "images", "snapshots", "locks")
BUILT = ("modules", "images", "snapshots")

# The health check measures how long drawing takes: that is of the machine, not of the test.
hypothesis.settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """This process's cache, of which images and snapshots are shared with the others."""
    base = tmp_path_factory.getbasetemp()
    everybodys = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    own = Cache(base / "cache")
    own.root.mkdir()
    users = Cache.default()
    for kind in FROM_THE_USER:
        (own.root / kind).symlink_to(users.folder(kind))
    for kind in OF_ALL_PROCESSES:
        shared = everybodys / "images" / kind
        shared.mkdir(parents=True, exist_ok=True)
        if kind in BUILT:
            _link_entries(users.folder(kind), shared, base / f"{kind}-aside")
        (own.root / kind).symlink_to(shared)
    return own


def _link_entries(built: Path, shared: Path, aside: Path) -> None:
    """Give the tests the entries that the user's cache has; none if it is on another disk."""
    for entry in built.iterdir():
        # An entry comes whole; that another process gave the same one first is as good.
        with contextlib.suppress(OSError):
            shutil.copytree(entry, aside / entry.name, copy_function=os.link)
            (aside / entry.name).rename(shared / entry.name)
    shutil.rmtree(aside, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _cache_is_the_default(cache: Cache) -> Iterator[None]:
    """Make this cache the default one: no test fills or trusts the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOJ_CACHE", str(cache.root))
        yield


def pytest_configure() -> None:
    """Let signals end what the tests start: nohup and a shell's `&` have children ignore them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what the full tier alone runs, before pytest selects by marks."""
    if item.nodeid.startswith(FULL):
        item.add_marker("full")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that take longest first."""
    items.sort(key=lambda item: next(
        (place for place, prefix in enumerate(FIRST) if item.nodeid.startswith(prefix)), len(FIRST)
    ))  # fmt: skip


# Not by marks and --dist loadgroup: pytest-xdist 3.8 loses them with pytest 9.2
# (https://github.com/pytest-dev/pytest-xdist/issues/1386).
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each group to one process, in the order of `pytest_collection_modifyitems`."""
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return GroupScheduling(config, log)


def group_of(test: str) -> str:
    """The group of a test, by its name."""
    file = test.partition("::")[0]
    return "by the clock" if file.startswith(BY_THE_CLOCK) else file


def skips_are_listed(environment: dict[str, str]) -> bool:
    """Return whether only the skips of tests/skips.toml may occur."""
    return environment.get("JOJ_SKIPS") == "listed" or environment.get("CI") in ("true", "1")


def may_skip(test: str, reason: str) -> bool:
    """Return whether tests/skips.toml lists that this test is skipped for this reason."""
    listed = tomllib.loads((ROOT / "tests" / "skips.toml").read_text())["skip"]
    return any(fnmatchcase(test, each["test"]) and each["says"] in reason for each in listed)


def _refuse_a_skip(report: Any) -> None:
    if not report.skipped or hasattr(report, "wasxfail") or not skips_are_listed(dict(os.environ)):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not may_skip(report.nodeid, reason):
        report.outcome = "failed"
        report.longrepr = f"{reason}\ntests/skips.toml does not list that {report.nodeid} may skip"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Any:
    """Refuse a skip of a test."""
    report = yield
    _refuse_a_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Any:
    """Refuse a skip of a whole file."""
    report = yield
    _refuse_a_skip(report)
    return report
