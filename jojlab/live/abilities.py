"""Finds what joj can do on this machine, what the lab lacks here, and the one line that helps.

The checks of the lab read setup/packages*.txt and agent/Cargo.toml, the same lists that setup/*.sh
use.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import JojError, MachineError, UseError
from jojlab.foundation.places import AGENT_CARGO, DEBIAN_PACKAGES, INSTALLED, agent_path
from jojlab.foundation.tools import dpkg_query, run_tool
from jojlab.guest.image.build import qemu_version, ready_image
from jojlab.guest.machine import HANDOUT_BYTES, Machine
from jojlab.guest.memory import BESIDE_MIB, MIB, SIZES_MIB, available_bytes
from jojlab.guest.snapshot import snapshot
from jojlab.live.raw_nand import refuse_nand
from jojlab.model.architecture import ARM64

_BTF = Path("/sys/kernel/btf/vmlinux")
_STATUS = Path("/proc/self/status")
_CAP_SYS_ADMIN = 21  # linux/capability.h
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
    yield Ability("trace", "joj trace, record by eBPF, verify attribution --host", *trace_lack())
    yield Ability("raw NAND", "joj run --clock wall --nand", *_nand_lack())


def _agent_lack() -> tuple[str, str]:
    try:
        agent_path()
    except MachineError as error:
        return error.message, error.remedy
    return "", ""


def trace_lack() -> tuple[str, str]:
    """Return why the tracer cannot be used here, and the remedy; both are empty where it can."""
    release = platform.release()
    numbers = tuple(int(word) for word in release.split("-")[0].split(".")[:2] if word.isdigit())
    if numbers < _OLDEST_TRACED:
        return f"Linux {release} is older than 5.10", "boot a newer kernel"
    if not _BTF.exists():
        return f"this kernel has no {_BTF}", "boot a kernel with CONFIG_DEBUG_INFO_BTF=y"
    if os.geteuid() != 0:
        return "only root may load the tracer into the kernel", "begin the command with sudo"
    if not _is_administrator():
        return "this container's root lacks CAP_SYS_ADMIN", "run it with --privileged --pid host"
    return _agent_lack()


def _is_administrator() -> bool:
    """Return whether this process has CAP_SYS_ADMIN, which root lacks in a usual container."""
    effective = re.search(r"^CapEff:\s*(\w+)", _STATUS.read_text(), re.MULTILINE)
    return effective is not None and bool(int(effective[1], 16) >> _CAP_SYS_ADMIN & 1)


def _nand_lack() -> tuple[str, str]:
    try:
        refuse_nand(None, may_destroy=False)
    except MachineError:
        return "the kernel lists none in /proc/mtd", "attach NAND that has no controller"
    except UseError:  # There is some: the options of a run say which, and that it may be used.
        return trace_lack()
    return "", ""


# A snapshot, an image and the results of some experiments; below this a run is likely to fail.
FREE_DISK_BYTES = 2_000_000_000
# A guest whose workload has filled its memory, and QEMU's own: translated code, the copy of the
# snapshot, what is handed out.
GUEST_BYTES = (SIZES_MIB[0] + BESIDE_MIB) * MIB + 2 * HANDOUT_BYTES


@dataclass(frozen=True)
class Check:
    """One thing looked at; `remedy` is empty when it is fine."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def checks(icount_shift: int, *, build: bool) -> Iterator[Check]:
    """Yield every check in turn. The guest image is made if need be; with `build` also the snapshot
    of a guest whose instructions take 2^icount_shift ns.

    What one check finds missing keeps no other from being made.
    """
    cache = Cache.default()
    looks: dict[str, Callable[[], str]] = {
        "packages": packages,
        **({} if INSTALLED else {"rust": rust}),
        "qemu": qemu_version,
        "agent": lambda: str(agent_path()),
        "arm64": arm64,
        "image": lambda: image(cache, icount_shift, build=build),
        "cache": lambda: usable(cache),
        "disk": lambda: disk(shutil.disk_usage(cache.folder("work")).free),
        "memory": lambda: memory(available_bytes(), os.cpu_count() or 1),
    }
    for name, look in looks.items():
        try:
            yield Check(name, True, look())
        except JojError as error:
            yield Check(name, False, error.message, error.remedy)
        except OSError as error:
            yield Check(name, False, str(error))


def packages(wanted: Sequence[Path] = DEBIAN_PACKAGES) -> str:
    """Look for the Debian packages of the lists `wanted`; MachineError names those missing."""
    text = "".join(path.read_text() for path in wanted)
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    # This is running in a Python, wherever it is from.
    names = [name for name in lines if name and not name.startswith("python3")]
    either = [[one.strip() for one in name.split("|")] for name in names]
    missing = [_choose_offered(each) for each in either if not any(map(_is_installed, each))]
    if missing:
        raise MachineError(f"missing: {', '.join(missing)}", _install_line(missing))
    return f"all {len(names)} of {', '.join(path.name for path in wanted)}"


def _install_line(names: Sequence[str]) -> str:
    """Return the line that installs packages. Root needs no sudo, which a container has not."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get install -y --no-install-recommends {' '.join(names)}"


def arm64() -> str:
    """Say whether cases with machine=arm64 can be run; what is missing for them is no fault."""
    tools = ((ARM64.qemu, ARM64.qemu_package), (ARM64.gcc, ARM64.cross_package))
    missing = [package for name, package in tools if shutil.which(name) is None]
    try:
        agent_path(ARM64.name)
    except MachineError:
        missing.append("agent")
    if missing:
        return f"no {', '.join(missing)}: for machine=arm64 alone, see docs/arm64.md"
    return f"{ARM64.qemu}, {ARM64.gcc}, {agent_path(ARM64.name)}"


def rust(cargo_toml: Path = AGENT_CARGO) -> str:
    """Look for a Rust that can build the agent; MachineError says which is needed."""
    needed = tomllib.loads(cargo_toml.read_text())["package"]["rust-version"]
    if shutil.which("cargo") is None:
        raise MachineError("cargo is missing", f"install Rust {needed} or newer: https://rustup.rs")
    found = run_tool(["cargo", "--version"], "run cargo").split()[1]
    if _numbers(found) < _numbers(needed):
        raise MachineError(f"cargo {found}, {needed} is needed", "rustup update stable")
    return f"cargo {found}"


def image(cache: Cache, icount_shift: int, *, build: bool) -> str:
    """Make the guest image if need be, and with `build` boot it once for its snapshot."""
    image = ready_image(cache)
    if not build:
        return image.fingerprint
    snapshot(cache, image, Machine(icount_shift))
    return f"{image.fingerprint} with its snapshot"


def usable(cache: Cache) -> str:
    """Make and remove a folder in the cache, and say how large it is."""
    with cache.work_dir():
        return f"{cache.root}: {sum(cache.sizes().values()) / 1e6:.0f} MB (joj cache)"


def disk(free_bytes: int) -> str:
    """Judge the free space on the cache's disk; MachineError when a run would likely fill it."""
    detail = f"{free_bytes / 1e9:.1f} GB free for the cache"
    if free_bytes < FREE_DISK_BYTES:
        raise MachineError(
            f"{detail}, {FREE_DISK_BYTES / 1e9:.0f} GB are needed",
            "make room, or set JOJ_CACHE to a folder on another disk",
        )
    return detail


def memory(free_bytes: int, jobs: int) -> str:
    """Say for how many of `jobs` guests there is room, or raise MachineError when for none.

    A guest that writes little takes a quarter of what it may take.
    """
    fit = free_bytes // GUEST_BYTES
    detail = f"{free_bytes / 1e9:.1f} GB free, a guest takes up to {GUEST_BYTES / 1e9:.1f} GB"
    if not fit:
        raise MachineError(detail, "end other programs, or add memory")
    return detail if fit >= jobs else f"{detail}: use joj run --jobs {fit} when cases write much"


def _is_installed(package: str) -> bool:
    return dpkg_query("${db:Status-Status}", package) == "installed"


def _choose_offered(packages: Sequence[str]) -> str:
    """Return the first package that the archive has, as apt-cache(8) says; or else the first."""
    if len(packages) > 1 and shutil.which("apt-cache"):
        for name in packages:
            # `show` knows names, too, that other packages only mention.
            known = subprocess.run(["apt-cache", "madison", name], capture_output=True, check=False)
            if known.stdout:
                return name
    return packages[0]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version.partition("-")[0])]
