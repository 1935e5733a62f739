"""Shows the answers about a fleet, and one day of a device: in the terminal, and as a page."""
