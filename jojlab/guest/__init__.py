"""Guests: the one package that starts QEMU.

`image` makes what a guest boots. The files here start the guest, run cases in it (from a snapshot,
or in real time), read the results it hands out, and keep finished results in the cache.
"""
