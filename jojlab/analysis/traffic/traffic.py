"""What I/O did a run make, whether or not transactions are known? Its kinds, and its pictures."""

from __future__ import annotations

from dataclasses import dataclass

from jojlab.analysis.traffic.characterisation import Characterisation, characterisations
from jojlab.analysis.traffic.lba_picture import LbaPicture, lba_pictures
from jojlab.trace.dataset import Dataset


@dataclass(frozen=True)
class Traffic:
    """The I/O of one case: what kind it was, and where it went over time, for each device."""

    kinds: Characterisation
    pictures: tuple[LbaPicture, ...]


def traffic(data: Dataset) -> dict[str, Traffic]:
    """Return the traffic of every case that has a request, by case_id."""
    pictures = lba_pictures(data)
    return {
        case_id: Traffic(kinds, pictures.get(case_id, ()))
        for case_id, kinds in characterisations(data).items()
    }
