"""Runs a whole fleet on one machine: a server with TLS, two collectors with disks, and apps.

Each app is a process of its own, which `python -m jojlab.fleet.demo` starts. It has a few databases
in a directory and one connection, to which the others are attached. Of its transactions every third
changes all of them, which is a multi-file transaction; the others change one. It prints the number
of multi-file transactions that were committed.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from jojlab.fleet.store.devices import enrol
from jojlab.fleet.store.objects import open_store
from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import agent_path
from jojlab.model.filesystems import FILESYSTEMS

_DISK_BYTES = 256 << 20
_MKFS = next(each.mkfs for each in FILESYSTEMS.values() if each.mkfs)
_TOOLS = (_MKFS.name, "mount", "umount", "openssl")


def check_machine() -> None:
    """Raise MachineError where this cannot run a demonstration."""
    if os.geteuid() != 0:
        raise MachineError(
            "a demonstration needs root: it makes two disks, and collectors load BPF programs",
            "sudo .venv/bin/joj fleet demo",
        )
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    if missing := [tool for tool in _TOOLS if not shutil.which(tool, path=path)]:
        remedy = f"apt-get install {_MKFS.package} mount openssl"
        raise MachineError(f"no {', '.join(missing)}", remedy)
    uploader = agent_path().with_name("joj-uploader")
    if not uploader.is_file():
        raise MachineError(f"no uploader at {uploader}", "make collector, in a checkout")


@contextmanager
def mounted_disk(folder: Path, name: str) -> Iterator[Path]:
    """Make a disk of a file in `folder`, and mount it; at the end both are gone."""
    image, directory = folder / f"{name}.img", folder / name
    with image.open("wb") as file:
        file.truncate(_DISK_BYTES)
    _run(_MKFS.name, "-q", str(image))
    directory.mkdir()
    _run("mount", "-o", "loop", str(image), str(directory))
    try:
        yield directory
    finally:
        _run("umount", str(directory))
        directory.rmdir()
        image.unlink()


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 that is its own authority; return its file and its key's."""
    made, key = folder / "certificate.pem", folder / "key.pem"
    _run(
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
        "-addext", "subjectAltName=IP:127.0.0.1",
        "-addext", "basicConstraints=critical,CA:FALSE",
        "-keyout", str(key), "-out", str(made),
    )  # fmt: skip
    return made, key


def _run(*command: str) -> None:
    environment = os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    ended: Sequence[str] = command
    done = subprocess.run(ended, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise MachineError(f"{' '.join(command)}: {done.stderr.strip()}", "see the line above")


DEVICES = ("laptop-1", "laptop-2")
_READY = re.compile(r"serving (https://\S+?),")
_STARTS_WITHIN_S = 60
_ENDS_WITHIN_S = 120


@dataclass(frozen=True)
class DemoRun:
    """Multi-file transactions that were made, by device; segments that were not sent."""

    data: Path
    simulated: dict[str, int]
    unsent: int


def run_demo(out: Path, transactions: int, seed: int, say: Callable[[str], None]) -> DemoRun:
    """Run it in the new folder `out`; its data are in OUT/data. Raises MachineError."""
    check_machine()
    agent = agent_path()
    data = out / "data"
    counts: dict[str, int] = {}
    with ExitStack() as stack:
        pem, key = certificate(out)
        tokens = {name: _token(out, data, name) for name in DEVICES}
        url = stack.enter_context(_serve(out, data, pem, key))
        say(f"server: {url}")
        with ExitStack() as collecting:
            disks = {}
            for name in DEVICES:
                disks[name] = collecting.enter_context(mounted_disk(out, name))
            for name in DEVICES:
                command = [
                    str(agent), "collect", "--server", url, "--token-file", str(tokens[name]),
                    "--ca-file", str(pem), "--spool", str(out / f"spool-{name}"),
                    "--directory", str(disks[name]), "--segment-seconds", "10",
                ]  # fmt: skip
                collecting.enter_context(_collecting(command, out / f"{name}.log"))
                say(f"collector: {name}")
            say(f"load: {len(APPS)} apps on each device")
            counts = {name: 0 for name in DEVICES}
            for name, joined in _run_apps(disks, transactions, seed):
                counts[name] += joined
            say("load: done; collectors close their last segments")
        unsent = sum(1 for _ in out.glob("spool-*/ready/*"))
    return DemoRun(data, counts, unsent)


def _token(out: Path, data: Path, name: str) -> Path:
    file = out / f"{name}.token"
    file.touch(0o600)
    file.write_text(enrol(open_store(str(data), create=True), name, int(time.time())) + "\n")
    return file


@contextmanager
def _serve(out: Path, data: Path, pem: Path, key: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "jojlab", "fleet", "serve", "--data", str(data), "--port", "0",
               "--certificate", str(pem), "--key", str(key)]  # fmt: skip
    log = out / "server.log"
    with _running(command, log) as process:
        yield _await_line(process, log, lambda: _READY.search(log.read_text(errors="replace")))


def _await_line(
    process: subprocess.Popen[bytes], log: Path, search: Callable[[], re.Match[str] | None]
) -> str:
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        if there := search():
            return there[there.lastindex or 0]
        time.sleep(0.1)
    raise MachineError(f"it did not start:\n{log.read_text(errors='replace')}", f"see {log}")


@contextmanager
def _collecting(command: list[str], log: Path) -> Iterator[None]:
    began = re.compile("collecting ")
    with _running(command, log) as process:
        _await_line(process, log, lambda: began.search(log.read_text(errors="replace")))
        yield
        if (code := process.poll()) is not None:
            text = log.read_text(errors="replace")
            raise MachineError(f"a collector ended ({code}):\n{text}", f"see {log}")


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _run_apps(disks: dict[str, Path], transactions: int, seed: int) -> Iterator[tuple[str, int]]:
    """Run all apps on all devices at once; yield what each committed over several databases."""
    running = []
    for number, (name, directory) in enumerate(disks.items()):
        for place, app in enumerate(APPS):
            command = [sys.executable, "-m", "jojlab.fleet.demo", app, str(directory),
                       str(transactions), "0.05", str(seed + 100 * number + place)]  # fmt: skip
            running.append((name, app, subprocess.Popen(command, stdout=subprocess.PIPE)))
    for name, app, process in running:
        printed, _ = process.communicate()
        if process.returncode:
            raise MachineError(f"the app {app} on {name} failed", "see the lines above")
        yield name, int(printed)


# Processes, as /proc/PID/comm has them, their databases, and the mode of their journals.
APPS = {
    "phonebook": (("contact2.db", "profile.db"), "truncate"),
    "mail": (("EmailProvider.db", "EmailProviderBody.db"), "persist"),
    "browser": (("History.db", "Archived.db", "Thumbnails.db"), "delete"),
    "messages": (("KakaoTalk.db", "KakaoTalk2.db"), "delete"),
}
_EVERY = 3


def run_app(name: str, directory: Path, transactions: int, pause_s: float, seed: int) -> int:
    """Commit so many transactions; return how many changed all databases."""
    Path("/proc/self/comm").write_text(name)
    databases, journal_mode = APPS[name]
    drawn = random.Random(seed)
    joined = 0
    with _open_databases(directory, databases, journal_mode) as connection:
        for number in range(transactions):
            is_joined = number % _EVERY == 0
            with connection:
                connection.execute("BEGIN")
                for schema in _schemas(databases)[: None if is_joined else 1]:
                    connection.execute(
                        f"INSERT INTO {schema}.rows (value) VALUES (?)", (drawn.randbytes(200),)
                    )
            joined += is_joined
            time.sleep(pause_s)
    return joined


@contextmanager
def _open_databases(
    directory: Path, databases: tuple[str, ...], journal_mode: str
) -> Iterator[sqlite3.Connection]:
    for name in databases:
        with closing(sqlite3.connect(directory / name)) as database:
            database.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, value BLOB)")
    # Where the first database is in memory, SQLite joins none: it has no name for a super-journal.
    first, *others = databases
    with closing(sqlite3.connect(directory / first, isolation_level=None)) as connection:
        for place, name in enumerate(others, 1):
            connection.execute(f"ATTACH ? AS db{place}", (str(directory / name),))
        for schema in _schemas(databases):
            connection.execute(f"PRAGMA {schema}.journal_mode = {journal_mode}")
        yield connection


def _schemas(databases: tuple[str, ...]) -> list[str]:
    """Return the names by which the connection has its databases."""
    return ["main", *(f"db{place}" for place in range(1, len(databases)))]


if __name__ == "__main__":
    app, folder, count, pause, its_seed = sys.argv[1:]
    print(run_app(app, Path(folder), int(count), float(pause), int(its_seed)))
