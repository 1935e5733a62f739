"""What the self-test of attribution found on one filesystem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

# Keys of a row in `joj verify attribution --json`, in the order in which they are shown; bytes.
COLUMNS = (
    "filesystem",
    "bytes",
    "misattributed_bytes",
    "unknown_bytes",
    "missing_bytes",
    "checked_bytes",
    "uncheckable_bytes",
    "offsetless_bytes",
    "lost_events",
    "addresses_checked",
    "addresses_wrong",
)


@dataclass(frozen=True)
class Verdict:
    """Counts as agent/src/verify/check.rs means them; addresses are sectors that a tool checked."""

    filesystem: str
    counts: Mapping[str, int]
    reasons: tuple[str, ...] = ()
    complaints: tuple[str, ...] = ()
    addresses_checked: int = 0
    addresses_wrong: int = 0
    sources: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, filesystem: str, found: Mapping[str, Any]) -> Verdict:
        """Take over what the agent printed."""
        counts = {name: int(found[name]) for name in COLUMNS if name in found}
        return cls(filesystem, counts, tuple(found["reasons"]), tuple(found["complaints"]))

    def with_addresses(self, checked: int, wrong: list[str], sources: tuple[str, ...]) -> Verdict:
        """Add what the tools of the filesystem said; `wrong` has one line for each sector."""
        return replace(
            self,
            addresses_checked=checked,
            addresses_wrong=len(wrong),
            complaints=(*self.complaints, *wrong[:20]),
            sources=sources,
        )

    def row(self) -> dict[str, Any]:
        """Return the counts by name, and what the addresses were checked against."""
        return {
            "filesystem": self.filesystem,
            **self.counts,
            "addresses_checked": self.addresses_checked,
            "addresses_wrong": self.addresses_wrong,
            "sources": ", ".join(self.sources),
        }

    @property
    def wrong(self) -> bool:
        """Whether a byte was said to be another's, or was not seen at all."""
        counts = self.counts
        return bool(
            counts["misattributed_bytes"] or counts["missing_bytes"] or self.addresses_wrong
        )

    @property
    def incomplete(self) -> bool:
        """Whether an owner is unknown or an event lost."""
        return bool(self.counts["unknown_bytes"] or self.counts["lost_events"] or self.reasons)
