"""Questions that wait at the same time, answered by one prediction.

The arithmetic of one row takes less time than the calls that do it: sixteen rows together take
four times as long as one. So requests that arrive while the server is busy are not answered one
after the other. A request that arrives alone waits for no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from nkcme.runtime import RuntimeModel
from nkcme.serving.answers import answers
from nkcme.serving.questions import Question

#: Rows that are predicted together; more would let the first of them wait for the last.
_MOST_ROWS = 64


class Gathering:
    """The questions that wait for answers of a model, in one event loop."""

    def __init__(self, model: RuntimeModel):
        self._model = model
        self._waiting: list[tuple[Question, asyncio.Future[bytes]]] = []

    async def answer(self, question: Question) -> bytes:
        """The body of the answer; a RequestError for a question that has none."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        self._waiting.append((question, future))
        if len(self._waiting) == 1:
            # After the other requests that have arrived by now.
            loop.call_soon(self._answer_all)
        return await future

    def _answer_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        first = n_rows = 0
        for last, (question, _) in enumerate(waiting):
            n_rows += len(question.rows)
            if n_rows >= _MOST_ROWS or last == len(waiting) - 1:
                self._answer(waiting[first : last + 1])
                first, n_rows = last + 1, 0

    def _answer(self, waiting: list[tuple[Question, asyncio.Future[bytes]]]) -> None:
        found: Sequence[bytes | Exception]
        try:
            found = answers(self._model, [question for question, _ in waiting])
        except Exception as error:  # each request must get an answer, if only a status of 500
            found = [error] * len(waiting)
        for (_, future), one in zip(waiting, found, strict=True):
            if future.done():  # the client has gone
                continue
            if isinstance(one, bytes):
                future.set_result(one)
            else:
                future.set_exception(one)
