"""What does a guest boot? The kernel, and an initramfs with the agent, the modules and the mkfs
programs.

Reads the installed packages, the agent and the flash module's source. Returns an image under its
content hash, which is made once and kept in the cache.
"""
