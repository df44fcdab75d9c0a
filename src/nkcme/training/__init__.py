"""Training by gradient steps, without knowledge of any model.

`loop` trains a `Task` on `rows` of a table. It runs in `chunks`: between two chunks the history,
the checkpoint, the progress bar and Ctrl-C are handled. `replicas` run side by side.
"""
