"""The command line of the benchmarks: it parses arguments and calls the other packages."""
