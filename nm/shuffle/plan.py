"""Looking up what a request asks for, a little at a time.

The length of an answer goes out before its first segment, so every segment has to be found first. That may take a disk
access for each, and all clients share the service's thread: whoever asks for much waits between the others' turns.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from nm.shuffle.answer import Answer, OutputSegment, Segment
from nm.shuffle.files import OutputMissing
from nm.shuffle.merged import Parts
from nm.shuffle.request import RequestRefused, ShuffleRequest
from riffle_merger.format import IndexEntry
from yaqd.security.writable import encode_text, encode_vint, encode_vlong

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
        self._left = deque(request.map_ids)
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
        tail = encode_vint(request.reduce)
        while self._left:
            map_id = self._left.popleft()
            segment, entry = self._segment(map_id)
            lengths = encode_vlong(entry.part_length) + encode_vlong(entry.raw_length)
            self.answer.add(encode_text(map_id) + lengths + tail, segment)
            if self._now() >= ends_at:
                break
        return not self._left

    def _segment(self, map_id: str) -> tuple[Segment, IndexEntry]:
        """Out of a merged file where there is one, else as the map task wrote it. Raises RequestRefused."""
        outputs, merged, request = self._service.outputs, self._service.merged, self.request
        which = request.job, request.job_id, map_id, request.reduce
        found = merged.find(*which, self._parts)
        if found is not None:
            return found
        try:
            output, entry = outputs.segment(*which)
        except OutputMissing as error:
            found = merged.find(*which, self._parts, at_any_rate=True)
            if found is not None:
                return found
            log.warning("shuffle of %s: %s", request.job_id, error)
            raise RequestRefused(500, f"map output of {map_id} is not available") from None
        return OutputSegment(outputs, output, entry), entry
