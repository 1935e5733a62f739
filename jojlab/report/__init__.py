"""Shows what jojlab/analysis found, in a terminal and as a page; computes nothing.

words      numbers, statements and reasons as people read them, for both
terminal   tables and progress in a terminal
mobibench  a live result in the lines of another program, for scripts that read those
charts     rows laid out for charts, and the charts as Vega-Lite
sections   the sections of a page: each a chart, its table and the command for its numbers
page       the page: sections, style and scripts in one file
"""
