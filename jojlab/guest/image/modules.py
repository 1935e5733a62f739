"""The guest's kernel modules: which, in what order, stripped; builds ours from source."""

from __future__ import annotations

import hashlib
import lzma
import shutil
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.foundation.lazy import pa
from jojlab.foundation.places import RESTORE
from jojlab.foundation.tools import need_tool, package_version, run_tool
from jojlab.guest.kernel.kernel import Kernel
from jojlab.model.architecture import X86_64, Architecture
from jojlab.model.filesystems import BLOCK_FILESYSTEMS, FILESYSTEMS

# Checksums: libcrc32c, Btrfs and F2FS look them up by name, which modules.dep does not know. Later
# kernels have other names for them, or call them without a module.
CHECKSUMS = ("crc32c_generic", "crc32_generic", "crc32c_cryptoapi")
ROOTS = (
    *CHECKSUMS,
    *(module for name in BLOCK_FILESYSTEMS for module in FILESYSTEMS[name].modules),
)

# What a module is loaded with. NVMe has queues for polling only where they are asked for.
PARAMETERS = {"nvme": "poll_queues=1"}

# Debug data, and with it the signature, which would cost the guest an RSA check. The build-id is a
# hash of the debug data, which name the folder of the build.
STRIP = ("-g", "-R", ".note.gnu.build-id")

# The device's sources; its tests and what builds leave are not part of it.
_SOURCES = ("*.c", "*.h", "Makefile", "Kbuild", "model/**/*.c", "model/**/*.h")

# The name and folder, beside the flash device's, of raw NAND; it shares a part of that one's model.
RAW_NAND = "raw_nand"
RAW_NAND_FOLDER = "nand"

# The name and folder of what stops a guest of arm64.
STOP = STOP_FOLDER = "guest_stop"


def load_order(
    modules_dep: str, roots: tuple[str, ...] = ROOTS, modules_builtin: str = ""
) -> list[str]:
    """Return paths of the modules to load, dependencies first, from the texts of modules.dep and
    modules.builtin.

    Raises MachineError when a root other than checksums is not in this kernel.
    """
    dependencies: dict[str, list[str]] = {}
    for line in modules_dep.splitlines():
        path, _, needs = line.partition(":")
        dependencies[path] = needs.split()
    by_name = {_name(path): path for path in dependencies}
    without_file = {_name(path) for path in modules_builtin.split()} | set(CHECKSUMS)

    order: list[str] = []

    def visit(path: str) -> None:
        # modules.dep lists what must come first last (depmod(8)).
        for need in reversed(dependencies[path]):
            visit(need)
        if path not in order:
            order.append(path)

    for root in roots:
        if root in by_name:
            visit(by_name[root])
        elif root not in without_file:
            raise MachineError(
                f"the kernel package has no module {root}",
                "use a Debian kernel: sudo apt-get install linux-headers-amd64",
            )
    return order


def _name(path: str) -> str:
    """Return the name of a module, as modprobe(8) has it: of a file that may be packed."""
    return Path(path).name.partition(".ko")[0].replace("-", "_")


def collect(tree: Path, kernel: Kernel, out: Path, roots: tuple[str, ...] = ROOTS) -> None:
    """Put `roots`, what they need, and `order` into `out`, from the unpacked packages of `kernel`.

    `order` has a file name a line, and after a space the parameters to load it with.
    """
    if not (tree / "lib").exists():  # /lib is a link on systems of today, but not in packages
        (tree / "lib").symlink_to("usr/lib")
    folder = tree / "lib" / "modules" / kernel.release
    if not (folder / "modules.dep").exists():
        # Packages come without it; their installation scripts make it.
        depmod = need_tool("depmod", "kmod")
        run_tool([str(depmod), "-b", str(tree), kernel.release], "work out module dependencies")
    builtin = folder / "modules.builtin"
    there = builtin.read_text() if builtin.exists() else ""
    paths = load_order((folder / "modules.dep").read_text(), roots, there)
    lines = []
    for path in paths:
        file = f"{Path(path).name.partition('.ko')[0]}.ko"
        strip(_unpack_module(folder / path), out / file, kernel.architecture)
        lines.append(f"{file} {PARAMETERS.get(_name(path), '')}".rstrip() + "\n")
    (out / "order").write_text("".join(lines))


def _unpack_module(module: Path) -> Path:
    """Unpack a module beside itself, if it is packed."""
    if module.suffix == ".ko":
        return module
    if module.suffix not in (".xz", ".zst"):
        raise MachineError(
            f"the module {module.name} is packed in an unknown way", "as .ko, .ko.xz or .ko.zst"
        )
    packed = module.read_bytes()
    target = module.with_suffix("")
    target.write_bytes(lzma.decompress(packed) if module.suffix == ".xz" else _zstd(packed))
    return target


def _zstd(packed: bytes) -> bytes:
    # Of what is installed for Parquet.
    with pa.input_stream(pa.py_buffer(packed), compression="zstd") as unpacked:
        return bytes(unpacked.read())


def strip(source: Path, target: Path, architecture: Architecture = X86_64) -> None:
    """Drop what the guest does not need and what depends on where the module was built."""
    package = "binutils" if architecture == X86_64 else architecture.cross_package
    tool = str(need_tool(architecture.strip, package))
    run_tool([tool, *STRIP, "-o", str(target), str(source)], f"strip {source.name}")


def flash_sources(source: Path) -> list[Path]:
    """Return the files in `source` that the flash device is built of."""
    return sorted({path for pattern in _SOURCES for path in source.glob(pattern)})


def flash_module(cache: Cache, kernel: Kernel, source: Path) -> Path:
    """Return the modelled flash device, flash.ko, built once per source and kernel.

    Raises MachineError when the source or a tool is missing or the compiler complains.
    """
    return _own_module(cache, kernel, "flash", source, [source])


def raw_nand_module(cache: Cache, kernel: Kernel, flash_source: Path) -> Path:
    """Return the modelled raw NAND, raw_nand.ko, as flash_module()."""
    source = flash_source.parent / RAW_NAND_FOLDER
    return _own_module(cache, kernel, RAW_NAND, source, [source, flash_source])


def stop_module(cache: Cache, kernel: Kernel, source: Path) -> Path:
    """Return the module that stops a guest of arm64, guest_stop.ko, as flash_module() does."""
    return _own_module(cache, kernel, STOP, source, [source])


def _own_module(cache: Cache, kernel: Kernel, name: str, source: Path, folders: list[Path]) -> Path:
    """Return the module `name` of `source`, of which the build sees all `folders` side by side."""
    for folder in folders:
        if not flash_sources(folder):
            raise MachineError(f"no source of the flash device in {folder}", RESTORE)
    files = [path for folder in folders for path in flash_sources(folder)]
    compiler = kernel.architecture.cross_package
    for tool, package in (("make", "make"), (kernel.architecture.gcc, compiler)):
        need_tool(tool, package)
    digest = hashlib.sha256()
    parts = (*STRIP, *kernel.make_words, kernel.release, kernel.version, package_version(compiler))
    for part in parts:
        digest.update(f"{part}\0".encode())
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(source.parent)}\0{len(content)}\0".encode() + content)

    def build(out: Path) -> None:
        with cache.work_dir() as work, cache.work_dir() as unpacked:
            for path in files:
                copy = work / path.relative_to(source.parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
            headers = str(kernel.headers(unpacked))
            # Messages of the kernel's headers name their folder.
            names = f"KCFLAGS=-ffile-prefix-map={unpacked}="
            folder = work / source.name
            command = ["make", "-C", headers, *kernel.make_words, names, f"M={folder}", "modules"]
            run_tool(command, f"build the module {name}")
            strip(folder / f"{name}.ko", out / f"{name}.ko", kernel.architecture)

    return cache.entry("modules", digest.hexdigest(), build) / f"{name}.ko"
