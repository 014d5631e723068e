"""`python -m ova` is `ova`."""

from ova.cli.app import main

main()
