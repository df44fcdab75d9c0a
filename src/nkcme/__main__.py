"""``python -m nkcme`` is ``nkcme``."""

from nkcme.cli import main

main()
