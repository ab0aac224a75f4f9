"""The Pulumi program of every stack; the stack's settings say which cell it is."""

from runfleet import program

program.run()
