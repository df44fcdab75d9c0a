"""The paper's experiments: what is run (`specs`, `rl_specs`), how (`protocols`), and its `rows`."""
