"""Tests of the server of a fleet, as a process of its own."""
