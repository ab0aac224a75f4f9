"""The command line: thin. Each command parses, calls a layer below, and prints."""
