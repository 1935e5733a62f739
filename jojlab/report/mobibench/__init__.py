"""How would Mobibench print it? A live result in its lines, for programs that read them.

Gets a LiveResult; gives lines, and notes on what is done otherwise here.
"""
