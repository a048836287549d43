"""`python -m perfplan`."""

from perfplan.cli.entry import entry

entry()
