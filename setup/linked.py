"""Writes what is linked into the programs of a release, and which Python packages joj needs:

    target/linked/licences.txt      the licence files of all that is linked, each text once
    target/linked/jojlab.cdx.json   an SBOM in CycloneDX 1.6, with the Python packages

usage: .venv/bin/python setup/linked.py, after `make agent-arm64`. The crates are those that cargo
names for the processors of each program; C libraries are those of this machine's Debian. The same
tree and the same packages give the same bytes. Tools that make SBOMs of crates know no C libraries.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "target/linked"
# The programs by their manifests, each with the lock of its crates and the processors it is for.
BOTH = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
PROGRAMS = (
    ("agent/Cargo.toml", "Cargo.lock", BOTH),
    ("agent/uploader/Cargo.toml", "agent/uploader/Cargo.lock", BOTH[:1]),
)
# Debian's static libraries, found by these compilers. What setup/arm64.sh unpacked is no package
# of this machine.
ARCHIVES = ("libc.a", "libgcc_eh.a", "libelf.a", "libz.a", "libzstd.a")
COMPILERS = ("gcc", "aarch64-linux-gnu-gcc")
UNPACKED = ROOT / "target/arm64/usr/share/doc"
IS_LICENCE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
# Libraries in C whose source is in a crate: where the header with the version is, and the licence.
BUNDLED = {
    "libsqlite3-sys": ("sqlite", "sqlite3/sqlite3.h", r'SQLITE_VERSION +"(.+?)"', "blessing"),
    "libbpf-sys": ("libbpf", "Cargo.toml", r'\nversion = ".+\+v(.+?)"', "BSD-2-Clause"),
}


@dataclass(frozen=True)
class Part:
    """Something that is linked in, or needed: its package URL, its licence as an SPDX expression
    where it has one, and its licence files.
    """

    purl: str
    licence: str = ""
    sha256: str = ""
    texts: tuple[Path, ...] = ()


def output(*command: str) -> str:
    """Return what a command prints; it runs in the checkout."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout


def licence_files(*folders: Path) -> tuple[Path, ...]:
    """Return the licence files of these folders, in order."""
    found = (path for folder in folders if folder.is_dir() for path in folder.iterdir())
    return tuple(sorted(path for path in found if path.is_file() and IS_LICENCE.match(path.name)))


def crates() -> Iterator[Part]:
    """Yield the crates that are linked, and the libraries in C whose source is in one."""
    for manifest, lock, targets in PROGRAMS:
        locked = tomllib.loads((ROOT / lock).read_text())["package"]
        sums = {(each["name"], each["version"]): each.get("checksum", "") for each in locked}
        options = ("--locked", f"--manifest-path={manifest}")
        tree = ("cargo", "tree", *options, "--edges=normal,no-proc-macro", "--prefix=none")
        for target in targets:
            lines = output(*tree, "--format={p}", f"--target={target}").splitlines()
            linked = {tuple(line.split()[:2]) for line in lines}
            facts = ("cargo", "metadata", *options, "--format-version=1")
            packages = json.loads(output(*facts, f"--filter-platform={target}"))["packages"]
            for package in packages:
                name, version = package["name"], package["version"]
                if (name, f"v{version}") not in linked or package["source"] is None:
                    continue
                folder = Path(package["manifest_path"]).parent
                # Of ring and libbpf-sys, whose C comes from elsewhere.
                texts = licence_files(folder, folder / "libbpf", *folder.glob("third_party/*"))
                sha256, licence = sums[name, version], package["license"].replace("/", " OR ")
                yield Part(f"pkg:cargo/{name}@{version}", licence, sha256, texts)
                if name in BUNDLED:
                    library, header, pattern, licence = BUNDLED[name]
                    [library_version] = re.findall(pattern, (folder / header).read_text())[:1]
                    yield Part(f"pkg:generic/{library}@{library_version}", licence)


def rust() -> Part:
    """Return Rust's standard library."""
    release = output("rustc", "--version").split()[1]
    folder = Path(output("rustc", "--print", "sysroot").strip()) / "share/doc/rust/licenses"
    texts = tuple(folder / f"{name}.txt" for name in ("Apache-2.0", "MIT"))
    return Part(f"pkg:generic/rust-std@{release}", "MIT OR Apache-2.0", texts=texts)


def debian() -> Iterator[Part]:
    """Yield Debian's packages of static libraries; agent/build.rs asks the same about zstd."""
    has_zstd = "-lzstd" in output("pkg-config", "--static", "--libs-only-l", "libelf")
    for compiler in COMPILERS:
        for archive in ARCHIVES:
            path = output(compiler, f"-print-file-name={archive}").strip()
            # setup/arm64.sh unpacked it, or there is none.
            if not os.path.isabs(path) or (archive == "libzstd.a" and not has_zstd):
                continue
            package = output("dpkg", "-S", os.path.realpath(path)).split(": ")[0]
            fields = "${Package} ${Version} ${Architecture}"
            name, version, of = output("dpkg-query", "-W", f"-f={fields}", package).split()
            yield debian_part(name, version, of, Path("/usr/share/doc") / name)
    for folder in sorted(UNPACKED.iterdir()):
        # What is linked are the packages with the static libraries, which have no others' texts.
        if folder.name.endswith("-dev") and (has_zstd or folder.name != "libzstd-dev"):
            log = output("zcat", str(next(folder.glob("changelog.Debian*.gz"))))
            [version] = re.findall(r"^\S+ \((.+?)\)", log)[:1]
            yield debian_part(folder.name, version, "arm64", folder)


def debian_part(name: str, version: str, architecture: str, folder: Path) -> Part:
    """Return a package of Debian's, with the text in its folder of documents."""
    purl = f"pkg:deb/debian/{name}@{version.replace(':', '%3A')}?arch={architecture}"
    return Part(purl, texts=licence_files(folder))


def python_packages() -> Iterator[Part]:
    """Yield the Python packages that joj needs, at the versions that the lock names."""
    for line in output("setup/locked.sh", "run").splitlines():
        if locked := re.match(r"([a-z0-9._-]+)==([^ ;]+)", line):
            name, version = locked.groups()
            licence = importlib.metadata.metadata(name).get("License-Expression") or ""
            yield Part(f"pkg:pypi/{name}@{version}", licence)


def component(part: Part) -> dict[str, Any]:
    """Return a part as CycloneDX has it."""
    name, version = part.purl.partition("?")[0].rsplit("/", 1)[1].split("@")
    licences = {"licenses": [{"expression": part.licence}]} if part.licence else {}
    hashes = {"hashes": [{"alg": "SHA-256", "content": part.sha256}]} if part.sha256 else {}
    about = {"type": "library", "bom-ref": part.purl, "name": name, "version": version}
    return {**about, **hashes, **licences, "purl": part.purl}


def sbom(parts: list[Part]) -> dict[str, Any]:
    """Return the SBOM of jojlab, of the time of the commit."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    about = Part(f"pkg:pypi/jojlab@{project['version']}", project["license"])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {**component(about), "type": "application"},
        },
        "components": [component(part) for part in parts],
    }


def licence_text(parts: list[Part]) -> str:
    """Return every licence text once, each after the parts that come with it."""
    users: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        for path in part.texts:
            users[path.read_text(errors="replace").strip()].append(part.purl)
    head = "What is linked into joj-agent and joj-uploader, and its licences.\n"
    head += "These come without a file of their own:\n\n"
    head += "".join(
        f"{it.purl}: {it.licence or 'no licence named'}\n" for it in parts if not it.texts
    )
    texts = ["\n".join(dict.fromkeys(who)) + f"\n\n{text}\n" for text, who in users.items()]
    return f"\n{'=' * 80}\n".join([head, *texts])


def main() -> None:
    """Write both files."""
    by_purl = {part.purl: part for part in (*crates(), rust(), *debian())}
    linked = [by_purl[purl] for purl in sorted(by_purl)]
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / "licences.txt").write_text(licence_text(linked))
    whole = json.dumps(sbom([*linked, *python_packages()]), indent=1, ensure_ascii=False)
    (OUTPUT / "jojlab.cdx.json").write_text(f"{whole}\n")
    print(f"setup: {len(linked)} parts are linked in: target/linked")


if __name__ == "__main__":
    main()
