"""How many tags an application may carry and what they look like, with Hadoop's texts."""

from collections.abc import Iterable
from dataclasses import dataclass

from yaqd.ipc.errors import YarnError

_CAUSE = "java.lang.IllegalArgumentException: "


@dataclass(frozen=True, slots=True)
class TagLimits:
    #: `yarn.resourcemanager.application.max-tags`
    count_max: int
    #: `yarn.resourcemanager.application.max-tag.length`
    characters_max: int

    def check(self, tags: Iterable[str]) -> None:
        """Raises YarnError."""
        found = set(tags)
        if len(found) > self.count_max:
            raise YarnError(f"{_CAUSE}Too many applicationTags, a maximum of only {self.count_max} are allowed!")
        for tag in sorted(found):
            if len(tag) > self.characters_max:
                most = self.characters_max
                raise YarnError(f"{_CAUSE}Tag {tag[:200]} is too long, maximum allowed length of a tag is {most}")
            if not tag.isascii():
                raise YarnError(f"{_CAUSE}A tag can only have ASCII characters! Invalid tag - {tag}")
