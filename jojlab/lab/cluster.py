"""Work on the workers of a Dask cluster, in place of this machine's processes: `--cluster`.

A job goes to its worker without files: the image is an input like any other, and each content is
sent at most once to each worker, by its hash, which keeps it in its own cache. The results come
back to this machine's cache. A worker needs jojlab and QEMU of this machine's versions, and is told
its cache by JOJ_CACHE as everywhere.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.foundation.hashing import sha256
from jojlab.guest.image.build import qemu_version
from jojlab.guest.process import kill_all
from jojlab.lab.job import Job, kept
from jojlab.lab.options import Options
from jojlab.lab.work import work

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
    found = {sha256(content): kept(cache, content) for content in contents}
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
