"""Measurements of fits to tables that do not fit into memory, and by several processes."""
