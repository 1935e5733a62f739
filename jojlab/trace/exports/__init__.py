"""Captures written in the formats of other tools."""
