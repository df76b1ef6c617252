"""Looking up what a request asks for, a little at a time.

The length of an answer goes out before its first segment, so every segment has to be found first. That may take a disk
access for each, and all clients share the service's thread: whoever asks for much waits between the others' turns.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from nm.shuffle.answer import Answer, OutputPiece, OutputSegment, Piece, shuffle_headers
from nm.shuffle.files import OutputMissing
from nm.shuffle.merged import Parts
from nm.shuffle.request import RequestRefused, ShuffleRequest
from yaqd.security.writable import encode_text

if TYPE_CHECKING:
    from nm.shuffle.server import ShuffleService

log = logging.getLogger(__name__)

#: seconds that one request's segments are looked for before others have their turn
_TURN_S = 0.005


class AnswerPlan:
    """For the service's own thread."""

    def __init__(self, service: "ShuffleService", request: ShuffleRequest, now: Callable[[], float]) -> None:
        """`now` gives seconds of any clock that does not go back."""
        self._service = service
        self._now = now
        #: number of the map to be looked for next
        self._next = 0
        #: what was found in merged files so far
        self._parts: Parts = {}
        self.request = request
        self.answer = Answer(request.job_id)
        if request.merged:
            service.merged.look_for(request.job, request.job_id, request.merged)

    def advance(self) -> bool:
        """Looks for segments until all are found or the turn is over; whether all are. Blocking.

        Raises RequestRefused.
        """
        request = self.request
        if self._service.jobs.get(request.job_id) is None:
            raise RequestRefused(401, "the job is over")
        ends_at = self._now() + _TURN_S
        while self._next < len(request.map_ids):
            piece, self._next = self._piece()
            self.answer.add(piece)
            if self._now() >= ends_at:
                break
        return self._next == len(request.map_ids)

    def _piece(self) -> tuple[Piece, int]:
        """Out of a merged file where there is one, else as the map task wrote it, and the number of the map after what
        was found. Raises RequestRefused."""
        outputs, merged, request = self._service.outputs, self._service.merged, self.request
        found = merged.find(request, self._next, self._parts)
        if found is not None:
            return found
        map_id = request.map_ids[self._next]
        try:
            output, entry = outputs.segment(request.job, request.job_id, map_id, request.reduce)
        except OutputMissing as error:
            found = merged.find(request, self._next, self._parts, at_any_rate=True)
            if found is not None:
                return found
            log.warning("shuffle of %s: %s", request.job_id, error)
            raise RequestRefused(500, f"map output of {map_id} is not available") from None
        (header,) = shuffle_headers(request.reduce, (encode_text(map_id),), (entry.part_length,), (entry.raw_length,))
        return OutputPiece(header, OutputSegment(outputs, output, entry)), self._next + 1
