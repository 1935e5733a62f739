"""The command joj as its users have it: a process, its words and its exit code."""
