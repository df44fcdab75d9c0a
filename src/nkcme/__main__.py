"""``python -m nkcme`` is ``nkcme``."""

from nkcme.cli.app import main

main()
