"""What the lab needs of this machine, checked one thing after the other."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from jojlab.device.profile import read_profile
from jojlab.errors import JojError
from jojlab.experiment.fields import BY_NAME
from jojlab.guest.cache import Cache
from jojlab.guest.image import Image, qemu_version
from jojlab.guest.qemu import Machine
from jojlab.guest.ready import ROOT, agent_path, ready_image
from jojlab.guest.snapshot import snapshot

PACKAGES = ROOT / "setup" / "packages.txt"

# A snapshot, an image and the results of some experiments; below this a run is likely to fail.
FREE_BYTES_NEEDED = 2_000_000_000


@dataclass(frozen=True)
class Check:
    """One thing looked at; `remedy` is empty when it is fine."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def checks(*, build: bool) -> Iterator[Check]:
    """Yield every check in turn; with `build`, image and snapshot are made on the way."""
    missing = missing_packages()
    line = f"apt-get install -y --no-install-recommends {' '.join(missing)}"
    detail = f"missing: {', '.join(missing)}" if missing else "all of setup/packages.txt"
    yield Check("packages", not missing, detail, line if missing else "")
    yield _check("qemu", qemu_version)
    yield _check("agent", lambda: str(agent_path()))
    cache = Cache.default()
    if build:
        yield _check("image", lambda: _built(ready_image(cache), cache))
    else:
        yield _check("image", lambda: ready_image(cache).fingerprint)
    sizes = cache.sizes()
    yield Check("cache", True, f"{cache.root}: {sum(sizes.values()) / 1e6:.0f} MB (joj cache)")
    free_bytes = shutil.disk_usage(cache.folder("work")).free
    enough = free_bytes >= FREE_BYTES_NEEDED
    remedy = "" if enough else "make room, or set JOJ_CACHE to a folder on another disk"
    yield Check("disk", enough, f"{free_bytes / 1e9:.1f} GB free for the cache", remedy)


def missing_packages() -> list[str]:
    """Return the Debian packages of setup/packages.txt that are not installed."""
    wanted = [line.split("#")[0].strip() for line in PACKAGES.read_text().splitlines()]
    missing = []
    for package in filter(None, wanted):
        if package.startswith("python3"):
            continue  # this is running in one
        command = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
        state = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        if state != "installed":
            missing.append(package)
    return missing


def _check(name: str, look: object) -> Check:
    assert callable(look)
    try:
        return Check(name, True, str(look()))
    except JojError as error:
        return Check(name, False, error.message, error.remedy)


def _built(image: Image, cache: Cache) -> str:
    snapshot(cache, image, Machine(read_profile(str(BY_NAME["device"].default)).icount_shift))
    return f"{image.fingerprint} with its snapshot"
