"""The settings that made commits like those of a case cheaper in the lab: a line of the short
answer, and the command that measures them.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jojlab.analysis.run.answer import Answer, answer
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.foundation.printable import printable_name
from jojlab.model.filesystem import SHORT_PAGE_BYTES
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.model.workloads.sqlite import ROLLBACK_MODES
from jojlab.report.shared.short_answer import MOST_COLUMNS, size


def cheaper_settings(result: Answer, program: Mapping[str, Any]) -> str:
    """Say which settings made commits like these cheaper in the lab; else which were seen."""
    mode, call = _usual_settings(program)
    if not mode:
        return "Cheaper: not measured here."
    if changes := ", ".join(_lab_changes(result, program)):
        line = f"Cheaper in the lab: {changes}; not measured here"
        # The command itself stands below.
        command = " (joj bill --like FILE)."
        return line + (command if len(line + command) <= MOST_COLUMNS else ".")
    name = "without a journal file" if mode == "none" else mode
    seen = f"{name}, with {call}" if call else name
    return f"Cheaper: most commits were {seen}; joj advise searches."


def cheaper_command(summary: RunSummary) -> str:
    """Return the command that measures in the lab what may be cheaper for the commits of a live
    trace; empty where nothing is known to be.
    """
    result = answer(summary)
    program: Mapping[str, Any] = next(iter(summary.cases[0].programs.values()), {})
    fields = list(_lab_changes(result, program).values()) if result else []
    # No file tells it, and the lab's own is fsync.
    if fields and _usual_settings(program)[1] == "fdatasync":
        fields.append("sync_call=fdatasync")
    settings = "".join(f" --set {field}" for field in fields)
    databases = program.get("database_files") or ()
    most = max(databases, key=lambda each: int(each["commits"]), default=None)
    path = str(most["path"]) if most else ""
    # A path below another root, or of a database that is gone, leads to no file.
    file = shlex.quote(path) if path.startswith("/") and Path(path).is_file() else "FILE"
    return f"joj bill --like {printable_name(file)}{settings}" if settings else ""


def shorter_pages(case: CaseSummary) -> str:
    """Return which shorter pages the lab found to be cheaper than the case's; empty where none."""
    filesystem = FILESYSTEMS.get(case.filesystem)
    fields = case.case
    # A script or a program may choose other pages; other blocks were not measured.
    is_measured = case.workload is not None and case.workload.has_measured_pages
    if not filesystem or not is_measured or fields.get("mkfs_options"):
        return ""
    page_bytes = int(fields.get("page_size_bytes", 0))
    mode = str(fields.get("journal_mode", ""))
    shorter = filesystem.cheaper_page_bytes(mode, page_bytes, SHORT_PAGE_BYTES)
    if not shorter:
        return ""
    pages = f"pages of {size(shorter)}, not {size(page_bytes)}"
    return f"Cheaper for short rows, by joj run page-size: {pages}; not measured here."


def _usual_settings(program: Mapping[str, Any]) -> tuple[str, str]:
    """Return journal mode and sync call of most commits, each empty where it is not known."""
    modes, calls = program.get("journal_modes") or {}, program.get("sync_calls") or {}
    mode = max(modes, key=lambda each: int(modes[each]["commits"]), default="")
    call = max(calls, key=calls.__getitem__, default="")
    return mode, "" if call == "none" else call


def _lab_changes(result: Answer, program: Mapping[str, Any]) -> dict[str, str]:
    """Return what the lab found to be cheaper on this filesystem than the settings that were seen,
    each with the field of a case that tries it.
    """
    filesystem = FILESYSTEMS.get(result.case.filesystem)
    lab = filesystem.cheaper_settings if filesystem else frozenset()
    mode, call = _usual_settings(program)
    reason = result.journal_reason.reason if result.journal_reason else ""
    wal_grows = any(f"-wal: {change}" in reason for change in ("created", "grew"))
    changes: dict[str, str] = {}
    # A transaction over several databases is atomic with a rollback journal alone.
    if mode in ROLLBACK_MODES and "journal_mode=wal" in lab and not _has_joint_commit(program):
        changes[f"wal for {mode}"] = "journal_mode=wal"
    # The sync of a WAL that grows writes its inode too, whichever call asks for it.
    if mode == "wal" and wal_grows and "vfs=wal" in lab:
        changes["a WAL that does not grow (joj cure)"] = "vfs=wal"
    elif call == "fsync" and "sync_call=fdatasync" in lab:
        changes["fdatasync for fsync"] = "sync_call=fdatasync"
    page_bytes = _usual_page_bytes(program)
    block_bytes = int(result.case.configuration.get("block_bytes") or 0)
    shorter = filesystem.cheaper_page_bytes(mode, page_bytes, block_bytes) if filesystem else 0
    if shorter:
        changes[f"pages of {size(shorter)} for {size(page_bytes)}"] = f"page_size_bytes={shorter}"
    return changes


def _has_joint_commit(program: Mapping[str, Any]) -> bool:
    """Return whether a commit was over several databases, with a super-journal or without."""
    modes = program.get("journal_modes") or {}
    # One with a super-journal is one commit, and counts in each of its databases.
    counted = sum(int(each["commits"]) for each in program.get("database_files") or ())
    counted += int(program.get("other_database_commits") or 0)
    unjoined = any(int(each["several_databases"]) for each in modes.values())
    return unjoined or counted > int(program.get("commits", 0))


def _usual_page_bytes(program: Mapping[str, Any]) -> int:
    """Return the length of the pages of most commits; 0 where it was not seen."""
    commits: Counter[int] = Counter()
    for each in program.get("database_files") or ():
        commits[int(each.get("page_bytes") or 0)] += int(each["commits"])
    return max(commits, key=commits.__getitem__, default=0)
