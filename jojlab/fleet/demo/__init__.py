"""Sets up a whole fleet on one machine: a server with TLS, two collectors, and apps that commit.

machine.py makes a disk for each device and a certificate, load.py is the apps, demo.py runs it all.
"""
