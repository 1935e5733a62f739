"""The parts that the full tier shares with the tests of commands and of guests."""

from __future__ import annotations

from tests.command.conftest import lab as lab
from tests.guest.conftest import agent as agent
from tests.guest.conftest import image as image
