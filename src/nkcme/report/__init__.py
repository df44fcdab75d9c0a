"""Reports in HTML and pictures."""
