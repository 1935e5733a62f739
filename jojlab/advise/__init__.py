"""Finds the cheapest settings that keep a guarantee: which settings there are, which are worth a
case, what each costs in the regimes that count, and what power cuts leave of the best.
"""
