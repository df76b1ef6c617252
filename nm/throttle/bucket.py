"""The bucket of core-seconds that says when an application's processes run and when they are held.

A core-second that an application was given is a token; without tokens it is held (SLAQ, section 4). The time, and the
processor time that it has used, are handed in. What it uses beyond its tokens, as nobody looks all the time, it owes.
"""

from typing import Final

#: between looks at an application that runs, s
LOOK_S: Final = 0.02
#: and at one that is held, which may have to end, or may have found a way to go on
HELD_LOOK_S: Final = 0.05
#: between looks at one that has nearly used up its tokens
SHORT_LOOK_S: Final = 0.002
#: tokens of so many seconds are kept by who does not use them
KEPT_S: Final = 1.0
#: nobody is held for longer at a time: programs have to answer
HELD_MOST_S: Final = 0.9
#: and then, whatever it owes, runs until it has used so much, or for one look where it does not want to, s
SLICE_S: Final = 0.005
#: core-seconds that are owed at most: of what ran while nobody looked, the rest is forgiven
OWED_MOST_S: Final = 10.0
#: held until it has tokens of so many seconds: shorter spells cost more signals
_SPELL_S: Final = 0.5
#: processors that it uses at once, as long as nobody has seen it run
_WIDTH: Final = 4.0
#: how far the number of processors that it was seen to use falls in one look
_FADES: Final = 0.8


class Bucket:
    def __init__(self, cores: float, now: float, used_s: float, *, processors: int) -> None:
        """Take an application on that runs now and has no tokens yet.

        `used_s` is the processor time that it has used ever, at `now`; `processors` are the machine's.
        """
        self.cores = max(0.0, cores)
        self._processors = float(max(1, processors))
        self._tokens_s = 0.0
        self._now, self._used_s = now, used_s
        #: processors that it uses at once when it runs
        self._width = min(_WIDTH, self._processors)
        self.is_held = False
        #: when it was held, or went on
        self._since = now
        #: it goes on because it was held for long: until it has used this, s
        self._slice_ends_s: float | None = None

    @property
    def tokens_s(self) -> float:
        """Return the core-seconds that it may use at once; negative: what it owes."""
        return self._tokens_s

    def change(self, cores: float, now: float, used_s: float) -> None:
        """Give it so many cores from now on."""
        self._book(now, used_s)
        self.cores = max(0.0, cores)
        self._tokens_s = min(self._tokens_s, KEPT_S * self.cores)

    def turn(self, now: float, used_s: float) -> float:
        """Book what it has used, decide whether it is held, and return in how many seconds to look again."""
        self._book(now, used_s)
        if self.is_held:
            has_enough = self._tokens_s >= self._enough()
            if has_enough or now - self._since >= HELD_MOST_S:
                self.is_held, self._since = False, now
                self._slice_ends_s = None if has_enough else self._used_s + SLICE_S
        elif self._tokens_s < self._width * SHORT_LOOK_S and not self._has_slice(now):
            self.is_held, self._since = True, now
        return self._next_look()

    def forfeit(self) -> None:
        """Take away the tokens that nobody was there to use."""
        self._tokens_s = min(self._tokens_s, 0.0)

    def _book(self, now: float, used_s: float) -> None:
        passed, used = max(0.0, now - self._now), max(0.0, used_s - self._used_s)
        if not self.is_held and passed >= SHORT_LOOK_S:
            self._width = min(max(used / passed, _FADES * self._width, 1.0), self._processors)
        self._tokens_s = min(self._tokens_s + passed * self.cores - used, KEPT_S * self.cores)
        self._tokens_s = max(self._tokens_s, -OWED_MOST_S)
        self._now, self._used_s = max(self._now, now), max(self._used_s, used_s)

    def _enough(self) -> float:
        """Return the tokens with which it goes on: a look's worth where it is given that soon."""
        spell = min(self._width * LOOK_S, self.cores * _SPELL_S)
        return min(max(spell, 2 * self._width * SHORT_LOOK_S), KEPT_S * self.cores)

    def _has_slice(self, now: float) -> bool:
        return self._slice_ends_s is not None and self._used_s < self._slice_ends_s and now - self._since < LOOK_S

    def _next_look(self) -> float:
        if self.is_held:
            left_s = (self._enough() - self._tokens_s) / self.cores if self.cores else HELD_MOST_S
            left_s = min(left_s, self._since + HELD_MOST_S - self._now)
            return min(max(left_s, SHORT_LOOK_S), HELD_LOOK_S)
        return min(max(self._tokens_s / self._width - SHORT_LOOK_S, SHORT_LOOK_S), LOOK_S)
