"""What the self-test of attribution found on one filesystem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jojlab.verify.compare import Addresses

# Keys of a row in `joj verify attribution --json`, in the order in which they are shown; the
# requests are those sent within a sync that the self-test made.
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
    "checked_requests",
    "askerless_requests",
    "wrong_asker_requests",
    "address_checked_bytes",
    "address_superseded_bytes",
    "address_untold_bytes",
    "address_wrong_bytes",
)

# Wrong addresses that are told; the others are counted.
_TOLD = 20


@dataclass(frozen=True)
class Verdict:
    """Counts as agent/src/verify/check.rs means them; addresses as jojlab/verify/compare.py."""

    filesystem: str
    counts: Mapping[str, int]
    reasons: tuple[str, ...] = ()
    complaints: tuple[str, ...] = ()
    addresses: Addresses = field(default_factory=Addresses)
    # Bytes written by block type; `discard` beside them.
    types: Mapping[str, int] = field(default_factory=dict)
    # The steps of the workload that were done; what was left out of them, and why.
    did: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, filesystem: str, found: Mapping[str, Any]) -> Verdict:
        """Take over what the agent printed."""
        counts = {name: int(found[name]) for name in COLUMNS if name in found}
        reasons, complaints = tuple(found["reasons"]), tuple(found["complaints"])
        return cls(
            filesystem,
            counts,
            reasons,
            complaints,
            types=found.get("types", {}),
            did=tuple(found["did"]),
            left_out=found["left_out"],
        )

    def with_addresses(self, addresses: Addresses) -> Verdict:
        """Add what the tools of the filesystem said."""
        complaints = (*self.complaints, *addresses.wrong[:_TOLD])
        return replace(self, addresses=addresses, complaints=complaints)

    def row(self) -> dict[str, Any]:
        """Return the counts by name, and what the addresses were checked against."""
        return {
            "filesystem": self.filesystem,
            **self.counts,
            "address_checked_bytes": self.addresses.checked_bytes,
            "address_superseded_bytes": self.addresses.superseded_bytes,
            "address_untold_bytes": self.addresses.untold_bytes,
            "address_wrong_bytes": len(self.addresses.wrong) * self.addresses.unit_bytes,
            "sources": ", ".join(self.addresses.sources),
            "addresses_missing": self.addresses.missing,
            "did": self.did,
            "left_out": self.left_out,
        }

    @property
    def wrong(self) -> bool:
        """Whether a byte was said to be another's, or was not seen at all, or a sync another's."""
        wrong = ("misattributed_bytes", "missing_bytes", "wrong_asker_requests")
        return bool(any(self.counts[name] for name in wrong) or self.addresses.wrong)

    @property
    def incomplete(self) -> bool:
        """Whether an owner or an asker is unknown, or an event lost."""
        unknown = ("unknown_bytes", "askerless_requests", "lost_events")
        return bool(any(self.counts[name] for name in unknown) or self.reasons)
