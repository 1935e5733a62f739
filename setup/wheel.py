"""Puts what jojlab needs beside its Python into a wheel, as package data in jojlab/data, and the
README into its metadata, for package indexes.

Hatchling runs both hooks (pyproject.toml). jojlab/foundation/places.py finds the files. An editable
installation holds none of them: it uses those of its checkout.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

CURE = ("joj_wal*.so", "joj_redo*.so", "joj-redo-leave")
# The folder is the same in the checkout and in jojlab/data.
FILES = (
    "experiments/*/**/*",  # a case may need files beside its experiment.toml
    "devices/*.toml",
    "kernels/*.toml",
    "schema/*.toml",
    "schema/fleet/*.toml",
    "agent/src/sql_script/pragmas.txt",
    "kernel/LICENSE",
    "kernel/flash/*",
    "kernel/flash/model/*",
    "kernel/flash/figures/*",
    "kernel/nand/*",
    "kernel/nand/model/*",
    "kernel/nand/figures/*",
    "kernel/ubi/*",
    "kernel/guest_stop/*",
    "kernel/memory_model/*",
    "kernel/user_mode/*",
    "setup/packages.txt",
    "vfs/*.[ch]",
    *(f"vfs/{folder}/{name}" for folder in ("build", "build/arm64") for name in CURE),
)
AGENT = "x86_64-unknown-linux-gnu/release/joj-agent"
ARM64_AGENT = "aarch64-unknown-linux-gnu/release/joj-agent"
# A link or an image of Markdown whose target is a file of the checkout.
RELATIVE = re.compile(r"(!?)\[([^]\n]*)\]\((?!#|[a-z]+:)([^)\s]+)\)")


def index_readme(text: str, source: str | None, version: str) -> str:
    """Return a README whose links work on a package index, which has no other file of the checkout.

    They lead to the tag of the version at the address `source`. Where that is None, a link becomes
    its words and its path, and an image is left out.
    """

    def absolute(link: re.Match[str]) -> str:
        image, words, path = link.groups()
        if source is None:
            return "" if image else words if words == path else f"{words}, {path}"
        where = f"{source.rstrip('/')}/{'raw' if image else 'blob'}/v{version}/{path}"
        return f"{image}[{words}]({where})"

    return RELATIVE.sub(absolute, text)


class ReadmeHook(MetadataHookInterface):
    """Adds the README, with links to `Source` of [project.urls]."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill the field `readme`."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        text = index_readme(text, source, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class CustomBuildHook(BuildHookInterface):
    """Adds the files and names the platform, that of the agent."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fill `build_data`; raises FileNotFoundError when there is no agent or no VFS yet."""
        if version == "editable":
            return
        root = Path(self.root)
        found = {path for pattern in FILES for path in root.glob(pattern) if path.is_file()}
        included = {str(path): f"jojlab/data/{path.relative_to(root)}" for path in sorted(found)}
        target = Path(os.environ.get("CARGO_TARGET_DIR") or root / "target")
        agent = target / AGENT
        if not agent.is_file():
            raise FileNotFoundError(f"no agent at {agent}: make agent")
        if not (root / "vfs/build/joj_wal.so").is_file():
            raise FileNotFoundError(f"no joj_wal.so in {root}/vfs/build: make cure")
        included[str(agent)] = "jojlab/data/joj-agent"
        # `make wheel` has made these; a wheel that a test builds can do without.
        licences = root / "target/linked/licences.txt"
        for path, name in ((target / ARM64_AGENT, "joj-agent-arm64"), (licences, licences.name)):
            if path.is_file():
                included[str(path)] = f"jojlab/data/{name}"
        build_data["force_include"] |= included
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-linux_x86_64"  # any Python: the agent is a static binary
