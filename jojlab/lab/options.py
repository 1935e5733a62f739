"""The options of running jobs: nothing here is part of what they compute."""

from __future__ import annotations

from dataclasses import dataclass

TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Options:
    """Jobs at a time; whether to use results of the cache; real seconds a job, of the smallest
    guest, more for one with more memory; and in place of processes of this machine the address of a
    cluster's scheduler, which says itself how many jobs it takes.
    """

    jobs: int = 1
    use_cache: bool = True
    timeout_s: float = TIMEOUT_S
    cluster: str = ""
