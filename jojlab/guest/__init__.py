"""Guests: the one package that starts QEMU.

`image` makes what a guest boots. The files here start the guest, run a job in it (from a snapshot,
or in real time) and read the results that it hands out.
"""
