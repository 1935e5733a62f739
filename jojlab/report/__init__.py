"""Terminal, HTML and charts; computes nothing."""
