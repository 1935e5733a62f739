"""Carries an experiment out: its cases become jobs of the lab, and their outcomes a run folder."""
