"""Which kernel does a guest boot, and where do its parts come from?

Reads the packages of this machine, kernels/NAME.toml, Debian's archive by this machine's apt, and
folders in which a kernel was built.
Gives a Kernel: it unpacks image and modules, and the headers that modules are built with.
"""
