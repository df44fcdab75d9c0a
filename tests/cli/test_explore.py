"""`nkcme explore` refuses in one line; tests/serving has its page."""

import socket


def test_bad_input_is_refused(refuse, model, table, tmp_path):
    (tmp_path / "other.csv").write_text("x,price\n1,2\n")
    assert "colour" in refuse("explore", model, tmp_path / "other.csv", "--no-open")
    assert "no-model" in refuse("explore", tmp_path / "no-model", table, "--no-open")


def test_a_port_in_use_is_refused(refuse, model, table):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refuse("explore", model, table, "--no-open", "--port", port)
        assert message.strip().endswith("choose another --port")
