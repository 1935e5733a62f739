"""Finds what a program needs in a guest: its interpreter and its libraries."""
