"""The simulated devices: what devices/NAME.toml says."""
