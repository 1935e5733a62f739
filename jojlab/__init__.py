"""jojlab on the engineer's machine: experiments, guests, tables, analyses, reports."""
