"""The manual's reference, made from the code: pages of commands, fields, figures, tables, devices.

`docs/conf.py` and `make man` ask for it; nothing at run time does.
"""
