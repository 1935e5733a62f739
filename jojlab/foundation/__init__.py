"""What every other room stands on: errors, the files that come with jojlab, tools of this machine,
hashes, the cache. Imports nothing else of jojlab.
"""
