"""Tests of the VFS that apps load, in programs that were not changed."""
