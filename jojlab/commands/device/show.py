"""joj device show: shows a device profile on one screen: parameters, sources, and the figures that
a benchmark would measure.
"""

from __future__ import annotations

from msgspec.structs import asdict
from rich.console import Console

from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import json_option
from jojlab.device.emulated import EMULATED, NOTE
from jojlab.device.figures import measure_model
from jojlab.device.profile import read_profile
from jojlab.foundation.printable import json_text
from jojlab.report.terminal.console import terminal
from jojlab.report.terminal.device import print_device


@command()
@argument("name", metavar="NAME", help="Name in devices/, or path of a profile.")
@option("--sources", is_flag=True, help="Show the source of each parameter.")
@json_option()
def show(name: str, sources: bool, as_json: bool) -> None:
    """Show a modelled device: parameters, bandwidth, IOPS, latencies.

    The figures come from the model itself, run in user space as a benchmark runs a device. Beside
    them are published or measured figures of such a device.

    \b
    Examples:
      joj device show emmc-galaxy-s3
      joj device show ufs-2.1 --sources
      joj device show qemu-nvme
      joj device show ./my-card.toml --json | jq .figures
    """
    if name in EMULATED:
        emulated = EMULATED[name]
        document = {**vars(emulated), "note": NOTE}
        print(json_text(document) if as_json else f"{name}: {emulated.title}\n{NOTE}")
        return
    profile = read_profile(name)
    with Console(stderr=True).status("") as status:
        figures = measure_model(
            profile.model,
            next_is=lambda figure: status.update(f"measuring the model: {figure}"),
            interface=profile.interface,
        )
    if not as_json:
        print_device(terminal(), profile, figures, sources=sources)
        return
    document = {
        "name": profile.name,
        "title": profile.title,
        "interface": profile.interface,
        "icount_shift": profile.icount_shift,
        "model": dict(profile.model),
        "sources": dict(profile.sources),
        "figures": figures,
        "stated": [asdict(stated) for stated in profile.stated],
    }
    print(json_text(document))
