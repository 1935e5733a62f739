"""The guest: image, QEMU, snapshot, and the cache of finished cases."""
