"""joj device: modelled devices and measured ones. One file per subcommand."""
