"""The places where jobs run: in a guest of this machine, started by threads of this process or by
workers of a Dask cluster. `work` knows neither the cache of results nor other jobs.

On this machine each job has a thread, which waits for its guest. Guests end with this process,
however that ends (jojlab/guest/process.py).

With `--cluster` the workers are those of a Dask cluster. A job goes to its worker without files:
the image is an input like any other, and each content is sent at most once to each worker, by its
hash, which keeps it in its own cache. The results come back to this machine's cache. A worker needs
jojlab and QEMU of this machine's versions, and is told its cache by JOJ_CACHE as everywhere.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import msgspec

from jojlab.foundation.cache import Cache, sha256
from jojlab.foundation.errors import GuestError, MachineError, UseError
from jojlab.guest import user_mode
from jojlab.guest.image.build import qemu_version
from jojlab.guest.machine import Machine
from jojlab.guest.process import kill_all
from jojlab.guest.run import run_by_virtual_clock, run_by_wall_clock
from jojlab.lab.job import Job, Kind, Options, keep_content
from jojlab.lab.memory_run import fold
from jojlab.lab.power_cuts import (
    add_native_verdicts,
    add_smallest_cuts,
    check_handed_disks,
    native_build,
    run_of_complaints,
)

_OUTCOME = "outcome.json"


class _AgentOutcome(msgspec.Struct):
    """The outcome of a job as the agent writes it (agent/src/commands/init.rs)."""

    status: Literal["ok", "error"]
    kind: Literal["use", "machine"] = "machine"
    message: str = ""


def work(cache: Cache, job: Job, timeout_s: float, tell: Callable[[str], None]) -> dict[str, bytes]:
    """Return the files that the guest of a job hands out; `cache` has or gets its snapshot.

    `timeout_s` is of Options; `tell` hears "snapshot" and "run". May be called by several threads
    and processes.
    Raises UseError when the agent finds the record wrong, or no guest is large enough; GuestError
    when the guest hangs, dies or cannot do it; MachineError when this machine lacks something.
    """
    guest_input = job.guest_input()
    if isinstance(job.machine, Machine):
        files = run_by_virtual_clock(
            cache, job.image, job.machine, guest_input, timeout_s=timeout_s, tell=tell,
            core=job.core, watched=job.watched,
        )  # fmt: skip
    else:
        files = run_by_wall_clock(
            cache, job.image, job.machine, guest_input, timeout_s=timeout_s, tell=tell
        )
    _check(files.pop(_OUTCOME, None))
    if all(name in files for name in user_mode.RUN_FILES):
        run = {name: files.pop(name) for name in user_mode.RUN_FILES}
        build = native_build(job)
        found = user_mode.judge(cache, build, job.image, job.record, run, timeout_s)
        _check(found.pop(_OUTCOME, None))
        if job.kind is Kind.POWER_CUTS:
            check_handed_disks(cache, job.image, found, user_mode.checker_library(cache))
            if fewer := run_of_complaints(found, run["run.json"]):
                run["run.json"] = fewer
                checked = user_mode.judge(cache, build, job.image, job.record, run, timeout_s)
                _check(checked.pop(_OUTCOME, None))
                add_smallest_cuts(found, checked)
            add_native_verdicts(files, found)
        else:
            files.update(found)
    if job.kind.answer not in files:
        raise GuestError(f"the guest handed out no {job.kind.answer}")
    if job.core:
        fold(files)
    if job.kind is Kind.POWER_CUTS:
        check_handed_disks(cache, job.image, files)
    return files


def _check(raw: bytes | None) -> None:
    """Raise what the agent reports, or GuestError when it reports nothing that can be read."""
    try:
        outcome = msgspec.json.decode(raw or b"", type=_AgentOutcome)
    except (ValueError, RecursionError) as error:
        raise GuestError(f"the guest's {_OUTCOME} is missing or damaged: {error}") from error
    if outcome.status == "ok":
        return
    if outcome.kind == "use":
        raise UseError(outcome.message)
    raise GuestError(f"the case failed in the guest: {outcome.message}", final=True)


_KILL_EVERY_S = 0.1


class Threads:
    """An executor of jobs; see `threads`."""

    def __init__(self, cache: Cache, options: Options, tell: Callable[[int, str], None]) -> None:
        self._job = functools.partial(_do, cache, options.timeout_s, tell)
        self._pool = ThreadPoolExecutor(options.jobs, "job")
        self._futures: list[Future[dict[str, bytes]]] = []

    def submit(self, number: int, job: Job) -> Future[dict[str, bytes]]:
        """Have a job done; `tell` hears its stages with its number."""
        self._futures.append(self._pool.submit(self._job, number, job))
        return self._futures[-1]

    def end(self) -> None:
        """Drop the jobs that wait, kill the guests that run, and end the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        while not all(each.done() for each in self._futures):
            kill_all()  # more than once: one may be about to start
            time.sleep(_KILL_EVERY_S)
        self._pool.shutdown()


@contextlib.contextmanager
def threads(cache: Cache, options: Options, tell: Callable[[int, str], None]) -> Iterator[Threads]:
    """Yield an executor of as many jobs at a time as asked for; what runs at the end is killed."""
    executor = Threads(cache, options, tell)
    try:
        yield executor
    finally:
        executor.end()


def _do(
    cache: Cache, timeout_s: float, tell: Callable[[int, str], None], number: int, job: Job
) -> dict[str, bytes]:
    try:
        return work(cache, job, timeout_s, functools.partial(tell, number))
    finally:
        tell(number, "done")


_ANSWERS_WITHIN_S = 10
_LOOK_EVERY_S = 0.5


class Cluster:
    """An executor of jobs; see `cluster`."""

    def __init__(self, client: Any, timeout_s: float, tell: Callable[[int, str], None]) -> None:
        self._client = client
        self._timeout_s = timeout_s
        self._executor = client.get_executor(pure=False)
        self._sent: dict[str, Any] = {}
        self._topic = f"joj-{uuid.uuid4()}"
        client.subscribe_topic(self._topic, lambda event: tell(*event[1]))

    def submit(self, number: int, job: Job) -> Future[dict[str, bytes]]:
        """Have a job done; `tell` hears its stages with its number."""
        contents = [self._content(sha, path) for sha, path in job.contents().items()]
        bare = job.with_files(dict.fromkeys(job.contents(), Path()))
        done: Future[dict[str, bytes]] = self._executor.submit(
            _at_worker, self._topic, number, bare, job.key, self._timeout_s, *contents
        )
        return done

    def _content(self, sha: str, path: Path) -> Any:
        """Return what stands for a content; Dask takes it to the workers that lack it."""
        if sha not in self._sent:
            content = path.read_bytes()
            if sha256(content) != sha:
                raise MachineError(f"{path}: damaged", "joj cache --empty")
            self._sent[sha] = self._client.scatter(content, hash=True)
        return self._sent[sha]


@contextlib.contextmanager
def cluster(options: Options, tell: Callable[[int, str], None]) -> Iterator[Cluster]:
    """Yield an executor of the cluster that `options` name, such as tcp://HOST:8786.

    At the end the jobs that wait are dropped, and the workers kill the guests that run.
    Raises MachineError when Dask is not installed, or no scheduler answers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise MachineError("--cluster needs Dask", "pip install 'jojlab[cluster]'") from error
    address = options.cluster
    try:
        client = Client(address, timeout=_ANSWERS_WITHIN_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MachineError(
            f"--cluster {address}: no scheduler of Dask answers: {error}",
            "start one: dask scheduler; name it as tcp://HOST:8786",
        ) from error
    with client:
        if not client.nthreads():
            raise MachineError(
                f"--cluster {address}: the scheduler has no workers",
                f"start some: dask worker {address} --nthreads 1",
            )
        yield Cluster(client, options.timeout_s, tell)


def _at_worker(
    topic: str, number: int, job: Job, key: str, timeout_s: float, *contents: bytes
) -> dict[str, bytes]:
    """Do a job on a worker, with the worker's cache."""
    from distributed import get_worker

    worker = get_worker()
    cache = Cache.default()
    wanted, there = job.image.manifest["qemu_version"], qemu_version(job.architecture)
    if wanted != there or job.key != key:
        raise MachineError(
            f"worker {worker.address} has another jojlab or QEMU ({there}; wanted: {wanted})",
            "install the same versions on every worker",
        )
    found = {sha256(content): keep_content(cache, content) for content in contents}
    try:
        with _killed_when_unwanted(worker):
            return work(
                cache,
                job.with_files(found),
                timeout_s,
                lambda stage: worker.log_event(topic, (number, stage)),
            )
    finally:
        worker.log_event(topic, (number, "done"))


@contextlib.contextmanager
def _killed_when_unwanted(worker: Any) -> Iterator[None]:
    """Kill the guests of this thread once nobody waits for the result of its task.

    The scheduler drops a task when the client that asked for it ends, however it does; the worker
    then calls it cancelled, but cannot interrupt its thread
    (https://distributed.dask.org/en/stable/worker-state.html).
    """
    key, thread, is_over = worker.get_current_task(), threading.get_ident(), threading.Event()

    def watch() -> None:
        while not is_over.wait(_LOOK_EVERY_S):
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                kill_all(thread)  # more than once: one may be about to start

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        is_over.set()
