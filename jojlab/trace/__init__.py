"""Run folders and the tables of schema/: reads, checks, imports and exports them."""
