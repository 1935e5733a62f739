"""Checks what jojlab measures against sources that know nothing of it."""
