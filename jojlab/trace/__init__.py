"""Opens and checks the tables of schema/."""
