"""Compares a run with budgets: reads them, compares them with its figures and with what power cuts
left, and finds the lines of the bill that grew since a bill was accepted.
"""
