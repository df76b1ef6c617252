"""Values that nobody changes, cheap to make: a ResourceManager makes dozens of them for each container."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(*, order: bool = False) -> Callable[[type[T]], type[T]]:
    """Make a class what is a frozen dataclass with slots to the type checker, which is where a change is refused.

    At run time it is an ordinary one: a frozen one takes three times as long to make, because each of its fields is
    set through `object.__setattr__`.
    """

    def decorate(cls: type[T]) -> type[T]:
        return dataclass(slots=True, order=order, unsafe_hash="__hash__" not in cls.__dict__)(cls)

    return decorate
