"""Ratios to peers, each by one command; no part of the product."""
