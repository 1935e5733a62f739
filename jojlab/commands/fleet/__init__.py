"""The subcommands of `joj fleet`."""
