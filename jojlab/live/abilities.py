"""What joj can do on this machine, and for each thing that it cannot the one line that helps."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.places import agent_path
from jojlab.live.raw_nand import refuse_nand

_BTF = Path("/sys/kernel/btf/vmlinux")
# The first kernel whose BPF has all that tracer and recorder use: docs/kernels.md.
_OLDEST_TRACED = (5, 10)


@dataclass(frozen=True)
class Ability:
    """One thing that joj does, and its commands. `reason` says why it cannot here, and `remedy`
    what helps; both are empty where it can.
    """

    name: str
    commands: str
    reason: str = ""
    remedy: str = ""


def abilities(lab_lacks: str) -> Iterator[Ability]:
    """Yield what joj does; `lab_lacks` names the checks of the lab that failed, none if empty."""
    lab = (f"it lacks: {lab_lacks}", "see the remedies above") if lab_lacks else ("", "")
    yield Ability("lab", "joj run, bill, advise, gate, verify durability", *lab)
    yield Ability("bench", "joj bench, replay, record by ptrace, record --sql", *_agent_lack())
    yield Ability("trace", "joj trace, record by eBPF, verify attribution --host", *_trace_lack())
    yield Ability("raw NAND", "joj run --clock wall --nand", *_nand_lack())


def _agent_lack() -> tuple[str, str]:
    try:
        agent_path()
    except MachineError as error:
        return error.message, error.remedy
    return "", ""


def _trace_lack() -> tuple[str, str]:
    release = platform.release()
    numbers = tuple(int(word) for word in release.split("-")[0].split(".")[:2] if word.isdigit())
    if numbers < _OLDEST_TRACED:
        return f"Linux {release} is older than 5.10", "boot a newer kernel"
    if not _BTF.exists():
        return f"this kernel has no {_BTF}", "boot a kernel with CONFIG_DEBUG_INFO_BTF=y"
    if os.geteuid() != 0:
        return "only root may load the tracer into the kernel", "begin the command with sudo"
    return _agent_lack()


def _nand_lack() -> tuple[str, str]:
    try:
        refuse_nand(None, may_destroy=False)
    except MachineError:
        return "the kernel lists none in /proc/mtd", "attach NAND that has no controller"
    except UseError:  # There is some: the options of a run say which, and that it may be used.
        return _trace_lack()
    return "", ""
