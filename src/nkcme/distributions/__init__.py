"""Predicted distributions, one batch per prediction.

`base` has the interface. `embedding`, `gaussian_mixture`, `sample` and `flow` implement it. An
embedding is read as a distribution by `readings` and is an element of a Hilbert space by
`hilbert_space`. `blocks` bounds memory, and `root_finding` inverts CDFs.
"""
