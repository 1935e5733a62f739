"""How would Mobibench print it? Formats a live result as its lines, for programs that read them.

Gets a LiveResult; returns lines, and notes on what differs from Mobibench here.
"""
