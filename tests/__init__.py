"""Tests that cross zones, and what the tests of several zones share."""
