"""The paper's experiments, comparisons with other packages, and measurements of speed.

A package beside the library and not part of it: ``nkcme`` never imports it, and the wheel does not
contain it. Run it as ``python -m benchmarks`` from the root of the repository; `README.md` in this
folder describes the commands.

- ``cli``: the command line; arguments only.
- ``experiments``: what is run, how it is trained and scored, and the rows that results are kept in.
- ``pages``: the tables, figures and text of docs/benchmarks.md, made from rows.
- ``speed``: this library's training loops against the same training written the usual way.
- ``checks``: the default on small tables and on tables of very different sizes.
- ``illustrations``: figures of the README and the documentation that need a trained model.
- ``provenance``: device, commit and versions, recorded with every result.
"""
