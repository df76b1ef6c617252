"""Looking up what a request asks for, a little at a time.

The length of an answer goes out before its first segment, so every segment has to be found first. That may take a disk
access for each, and all clients share the service's thread: whoever asks for much waits between the others' turns.

What is lost comes last: Hadoop's reducers stop at the first that is. A header before it that names no map makes them
report all of it at once. Otherwise they do so one after the other with a pause of 10 s or more after each. They give up
where five maps have failed and these are half of what they tried. So they are told at once of no more than half of what
they got.
"""

import logging
from collections.abc import Callable

from nm.shuffle.answer import Answer, LostPiece, OutputPiece, OutputSegment, Piece
from nm.shuffle.files import OutputLost, OutputMissing, OutputRefused, OutputUnreadable
from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.merged.outputs import MergedOutputs, Parts
from nm.shuffle.outputs import MapOutputs
from nm.shuffle.request import RequestRefused, ShuffleRequest
from yaqd.security.writable import encode_text

log = logging.getLogger(__name__)

#: seconds that one request's segments are looked for before others have their turn
_TURN_S = 0.005
#: name of no map attempt; reducers' logs have it
_SEVERAL = encode_text("several map outputs are lost")
UNREADABLE = "map outputs cannot be read now"


class AnswerPlan:
    """For the service's own thread."""

    def __init__(
        self,
        jobs: ShuffleJobs,
        outputs: MapOutputs,
        merged: MergedOutputs,
        request: ShuffleRequest,
        now: Callable[[], float],
    ) -> None:
        """`now` gives seconds of any clock that does not go back."""
        self._jobs = jobs
        self._outputs = outputs
        self._merged = merged
        self._now = now
        #: number of the map to be looked for next
        self._next = 0
        #: what was found in merged files so far
        self._parts: Parts = {}
        #: maps of which there is nothing, and why of the first
        self._lost: list[str] = []
        self._why = ""
        #: that they were here is known of one of them at least
        self._was_here = False
        self.request = request
        self.answer = Answer(request.job_id)
        if request.merged:
            merged.look_for(request.job, request.job_id, request.merged)

    def advance(self) -> bool:
        """Looks for segments until all are found or the turn is over; whether all are. Blocking.

        Raises RequestRefused.
        """
        request = self.request
        if self._jobs.get(request.job_id) is None:
            raise RequestRefused(401, "the job is over")
        ends_at = self._now() + _TURN_S
        while self._next < len(request.map_ids):
            try:
                piece, self._next = self._piece()
                self.answer.add(piece)
            except OutputMissing as error:
                self._note_lost(request.map_ids[self._next], error)
                self._next += 1
            if self._now() >= ends_at:
                break
        is_over = self._next == len(request.map_ids)
        if is_over and self._lost:
            self._say_what_is_lost()
        return is_over

    @property
    def cost_bytes(self) -> int:
        """About what was found so far takes in memory until it is sent."""
        return self.answer.cost_bytes + sum(part.cost_bytes for part in self._parts.values())

    @property
    def found(self) -> int:
        """Segments."""
        return self._next - len(self._lost)

    def _note_lost(self, map_id: str, error: OutputMissing) -> None:
        """Raises RequestRefused."""
        if isinstance(error, OutputUnreadable) and error.is_of_all:
            log.warning("shuffle of %s: %s", self.request.job_id, error)
            raise RequestRefused(500, UNREADABLE)
        self._why = self._why or str(error)
        self._lost.append(map_id)
        if not self._was_here and not isinstance(error, OutputRefused):
            self._was_here = isinstance(error, OutputLost) or self._merged.has(self.request.job_id, map_id)

    def _say_what_is_lost(self) -> None:
        """Raises RequestRefused where there is nothing of all, and nothing was known of them either."""
        request, lost = self.request, self._lost
        further = f" (and {len(lost) - 1} other map outputs)" if len(lost) > 1 else ""
        log.warning("shuffle of %s: %s%s", request.job_id, self._why, further)
        if not self.answer and not self._was_here:
            raise RequestRefused(500, f"map output of {lost[0]} is not available")
        texts = list(map(encode_text, lost))
        if 1 < len(lost) <= self.found / 2:
            texts.insert(0, _SEVERAL)
        self.answer.add(LostPiece(request.reduce, texts))

    def _piece(self) -> tuple[Piece, int]:
        """Out of a merged file where there is one, else as the map task wrote it. Also the number of the map after what
        was found. Raises OutputMissing."""
        outputs, merged, request = self._outputs, self._merged, self.request
        found = merged.find(request, self._next, self._parts)
        if found is not None:
            return found
        map_id = request.map_ids[self._next]
        try:
            output, entry = outputs.segment(request.job, request.job_id, map_id, request.reduce)
        except OutputMissing:
            found = merged.find(request, self._next, self._parts, at_any_rate=True)
            if found is None:
                raise
            return found
        segment = OutputSegment(outputs, output, entry)
        return OutputPiece(request.reduce, encode_text(map_id), segment), self._next + 1
