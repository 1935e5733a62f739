"""Old traces of other tools, read into the tables of schema/."""
