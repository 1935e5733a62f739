"""Devices: profiles of modelled ones (devices/NAME.toml), calibration, measuring real ones."""
