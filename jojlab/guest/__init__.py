"""A guest from its first byte to its last: the one package that starts QEMU.

`image` makes what it boots; the files here start it, run cases in it from a snapshot or by the
clock on the wall, read what it hands out, and keep what is finished in the cache.
"""
