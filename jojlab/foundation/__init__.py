"""The ground of every other room: errors, the files that come with jojlab, tools of this machine,
hashes, the cache. Imports nothing else of jojlab.
"""
