"""How are numbers, statements, reasons and kinds of I/O worded? The same for every output.

Gets what jojlab/analysis found; returns text and rows of text, without markup.
"""
