"""Reads traces of other tools into the tables of schema/."""
