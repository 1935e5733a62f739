"""Writes captures in the formats of other tools."""
