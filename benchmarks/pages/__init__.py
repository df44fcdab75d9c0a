"""docs/benchmarks.md, made from rows alone: statistics, tables, figures and text."""
