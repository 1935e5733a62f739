"""What each filesystem's own tool says of a disk that is not mounted, one filesystem a file."""
