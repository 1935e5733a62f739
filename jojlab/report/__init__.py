"""Shows what jojlab/analysis found, in a terminal and as a page; computes nothing.

words      numbers, statements and reasons in readable form, for both
terminal   tables and progress in a terminal
mobibench  a live result in the output format of Mobibench, for scripts that read it
charts     rows laid out for charts, and the charts as Vega-Lite
sections   the sections of a page, a template each: a chart, its table, the command for its numbers
page       the page: sections, style and scripts in one file
fleet      answers about a fleet, and one day of a device, in the terminal and as a page
"""
