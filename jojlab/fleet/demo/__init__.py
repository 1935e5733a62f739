"""Sets up a whole fleet on one machine: a server with TLS, two collectors, and apps that commit.

demo.py runs it all, load.py is the apps.
"""
