"""Tables: reading them from frames and files, and encoding them as arrays."""
