"""What each filesystem's own tool reports about an unmounted disk; one file per filesystem."""
