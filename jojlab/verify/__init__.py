"""Checks jojlab's measurements against independent sources."""
