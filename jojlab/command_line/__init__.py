"""The parts that several subcommands share: options made of fields, and running a live case."""
