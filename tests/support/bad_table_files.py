"""CSV files that `nkcme fit --target price` refuses: their bytes, and what the message names."""

BAD_TABLES = {
    "empty": (b"", "empty"),
    "header only": (b"x,price\n", "0 rows"),
    "not UTF-8": ("x,price\nü,1\n".encode("latin-1"), "UTF-8"),
    "half-written": (b"x,price\n1,2\n3", "line 3"),
    "open quote": (b'x,price\n1,2\n"3,4\n', "not closed"),
    "long field": (b"x,price\n1,2\n" + b"3" * 200_000 + b",4\n", "more than 131,072 characters"),
    "duplicate columns": (b"x,x,price\n1,2,3\n", "several columns named 'x'"),
    "dates as target": (b"x,price\n1,2024-01-31\n2,2024-02-29\n", "is text, such as '2024-01-31'"),
    "no target": (b"x,prize\n1,2\n", "'prize'"),
    "target alone": (b"price\n1\n2\n", "only column"),
    "text as target": (b"x,price\n1,cheap\n2,dear\n", "text"),
    "hole in target": (b"x,price\n1,2\n2,\n", "missing"),
    "infinite target": (b"x,price\n1,2\n2,inf\n", "'price'"),
    "one row": (b"x,price\n1,2\n", "at least 2 rows"),
}
