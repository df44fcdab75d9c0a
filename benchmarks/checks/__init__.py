"""Checks of `NKCME` outside the paper's experiments: small tables, and tables of extreme sizes."""
