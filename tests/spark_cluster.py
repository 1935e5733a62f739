"""A cluster of Apache Spark on this machine: a master, two workers and a Spark Connect server.

The programs are those of the pyspark package, and need Java. All listen on 127.0.0.1.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from tests.hangs import HANG_S

HOST = "127.0.0.1"
WORKERS = 2
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"


def why_not() -> str:
    """Return what is missing for a cluster; empty if nothing is."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed: pip install -e '.[spark]'"
    return "" if shutil.which("java") else "there is no Java: apt-get install default-jre-headless"


@contextmanager
def spark_cluster(folder: Path, executor_memory: str = "1g") -> Iterator[str]:
    """Run a cluster whose logs and files are in `folder`; yield the address of its server."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    environment = os.environ | {
        "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOCAL_DIRS": str(folder), "SPARK_DAEMON_MEMORY": "1g",
    }  # fmt: skip
    with ExitStack() as stack:

        def start(name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, start_new_session=True
            )
            stack.callback(_end, process)
            return process

        master, server = _free_port(), _free_port()
        url = f"spark://{HOST}:{master}"
        program = str(home / "bin/spark-class")
        first = start("master", [program, _MASTER, "--host", HOST, "--port", str(master),
                                 "--webui-port", "0"])  # fmt: skip
        _await_port(master, first, folder / "master.log")
        for number in range(WORKERS):
            start(f"worker-{number}", [
                program, _WORKER, "--host", HOST, "--cores", "1", "--memory", "4g",
                "--webui-port", "0", "--work-dir", str(folder / f"work-{number}"), url,
            ])  # fmt: skip
        last = start("connect", [
            str(home / "bin/spark-submit"), "--class", _CONNECT, "--master", url,
            "--conf", f"spark.connect.grpc.binding.port={server}",
            "--conf", f"spark.connect.grpc.binding.address={HOST}",
            "--conf", f"spark.driver.host={HOST}", "--conf", "spark.ui.enabled=false",
            "--conf", "spark.sql.shuffle.partitions=8", "--conf", "spark.cores.max=2",
            "--conf", "spark.executor.cores=1",
            "--conf", f"spark.executor.memory={executor_memory}",
            "--conf", f"spark.sql.warehouse.dir={folder / 'warehouse'}",
        ])  # fmt: skip
        _await_port(server, last, folder / "connect.log")
        yield f"sc://{HOST}:{server}"


def workers_that_ran(folder: Path) -> int:
    """Return how many workers started an executor: each has a folder of its application."""
    return sum(any((folder / f"work-{number}").glob("app-*/*")) for number in range(WORKERS))


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(20)
            return


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _await_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline and process.poll() is None:
        with closing(socket.socket()) as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"nothing listens on {port}:\n{log.read_text(errors='replace')[-2000:]}")
