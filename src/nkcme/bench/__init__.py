"""The paper's experiments: what is run, running it, and what came out."""
