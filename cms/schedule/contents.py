"""What a block of a machine is given to: a job, or a mix of jobs that share it in time."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from ..errors import InvalidSchedule
from ..values.frozen import FrozenMap
from ..values.names import checked_table
from ..values.numbers import Number, exact, shown


class Mix(FrozenMap[str, Fraction]):
    """A batch of each of several jobs, which one block serves in turn; immutable and hashable.

    Parameters
    ----------
    amounts : Mapping[str, number]
        How many items of each job are taken together, > 0.

    Examples
    --------
    >>> mix = Mix({"vgg16": 4, "resnet50": "8"})
    >>> print(mix)
    resnet50 x 8 + vgg16 x 4
    >>> mix == Mix({"resnet50": 8, "vgg16": 4}), mix["vgg16"]
    (True, Fraction(4, 1))
    """

    __slots__ = ()

    def __init__(self, amounts: Mapping[str, Number]) -> None:
        given = checked_table(amounts, "a mix", "job", InvalidSchedule)
        if not given:
            raise InvalidSchedule("a mix has no jobs; leave the block idle instead")
        table = {
            name: exact(amount, f"amount of job {name!r} in a mix", error=InvalidSchedule)
            for name, amount in given.items()
        }
        if nothing := [name for name, amount in table.items() if not amount]:
            raise InvalidSchedule(
                f"amount of job {nothing[0]!r} in a mix is 0; expected a number > 0: leave out "
                "the jobs that the block does not serve"
            )
        super().__init__(table)

    # Contents are sorted where they are keys of a table: names before mixes.

    def __lt__(self, other: object) -> bool:
        if isinstance(other, Mix):
            return tuple(self.items()) < tuple(other.items())
        return False if isinstance(other, str) else NotImplemented

    def __gt__(self, other: object) -> bool:
        if isinstance(other, Mix):
            return tuple(self.items()) > tuple(other.items())
        return True if isinstance(other, str) else NotImplemented

    def __str__(self) -> str:
        return " + ".join(f"{name} x {shown(amount)}" for name, amount in self.items())

    def __repr__(self) -> str:
        return f"Mix({self})"


#: What a block of a machine is given to: the name of a job, or a mix of several.
Content: TypeAlias = str | Mix


def checked_content(content: object, what: str) -> Content:
    """Return a content as a plain text or the mix itself, or refuse anything else."""
    if type(content) is Mix:  # a subclass could say one thing now, another later
        return content
    if not isinstance(content, str):
        raise InvalidSchedule(f"{what} is {content!r}; expected a text, or a Mix")
    return str.__str__(content)


def shown_content(content: Content) -> str:
    """Write a content for a message."""
    return f"job {content!r}" if isinstance(content, str) else f"the mix {str(content)!r}"
