"""Sets a saved guest's counter of executed instructions to zero without changing its clock.

In record mode, QEMU keeps the number of instructions since it last noted them in a 32-bit signed
int. It notes them first when the snapshot is loaded, starting from zero
(replay_advance_current_icount in replay/replay-internal.c: `int diff`, `assert(diff >= 0)`; the
same in QEMU 7.2 and 9.0). So after a boot of 2^31 to 2^32 instructions, or of 2^32 more, every case
failed that assertion. The virtual clock is bias + (instructions << shift) (icount_get_locked): what
is subtracted from the counter is added to the bias. Only record mode reads the counter itself.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from jojlab.guest.errors import GuestError

# The subsection of the section `timer`, as vmstate_save writes it (migration/vmstate.c): its mark,
# the length of its name, its name, its version; then qemu_icount_bias and qemu_icount
# (icount_vmstate_timers). All is big-endian.
_HEADER = b"\x05\x0ctimer/icount" + struct.pack(">I", 1)
_FIELDS = struct.Struct(">qq")


def begin_count(state: Path, icount_shift: int) -> None:
    """Rewrite the file of a saved guest, in place, so that its instructions count from zero.

    Raises GuestError when the file does not hold exactly one counter where it is looked for.
    """
    with state.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        # The guest's memory comes first; it holds none of QEMU's names but by accident.
        at = content.rfind(_HEADER)
        if at < 0 or at + len(_HEADER) + _FIELDS.size > len(content):
            raise GuestError(
                "the saved guest has no section timer/icount of version 1",
                remedy="this QEMU saves its clock in another way: use QEMU 7.2",
            )
        fields = at + len(_HEADER)
        bias_ns, instructions = _FIELDS.unpack_from(content, fields)
        _FIELDS.pack_into(content, fields, bias_ns + (instructions << icount_shift), 0)
