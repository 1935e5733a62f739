"""Real guests."""
