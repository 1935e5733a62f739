"""The subcommands of `joj device`: one file each."""
