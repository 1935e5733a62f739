"""How are numbers, statements, reasons and kinds of I/O said? The same words for every reader.

Gets what jojlab/analysis found; gives text and rows of text, without markup.
"""
