"""The command line `ova`: one file per command; heavy imports stay inside the functions."""

from ova.cli.app import main as main
