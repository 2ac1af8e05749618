"""Values that people write on the command line."""

from __future__ import annotations

import re

from oncebench.messages import BadInput

_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}


def seconds(text: str, option: str) -> float:
    """`5s`, `100ms`, `0.5` or `2min` in seconds.

    Raises:
        BadInput: It is none of these.
    """
    match = re.fullmatch(r"(\d+(?:\.\d*)?(?:e-?\d+)?|\.\d+)\s*(s|ms|us|min)?", text.strip())
    if match is None:
        raise BadInput(f"{option} takes a time such as 5s, 100ms or 0, not {text!r}")
    return float(match[1]) * _UNITS[match[2] or "s"]


def one_of(texts: list[str], allowed: tuple[str, ...], option: str) -> list[str]:
    """A list that may be given by commas or by repeating the option, each value once.

    Raises:
        BadInput: One of them is not allowed.
    """
    values = list(dict.fromkeys(part.strip() for text in texts for part in text.split(",")))
    for value in values:
        if value not in allowed:
            raise BadInput(f"{option} takes {', '.join(allowed)}, not {value!r}")
    return values


def whole_numbers(texts: list[str], option: str) -> list[int]:
    """The same for whole numbers of any size.

    Raises:
        BadInput: One of them is none.
    """
    parts = dict.fromkeys(part.strip() for text in texts for part in text.split(","))
    for part in parts:
        if not re.fullmatch(r"[0-9]{1,9}", part):
            raise BadInput(f"{option} takes whole numbers such as 1,2,4, not {part!r}")
    return list(dict.fromkeys(map(int, parts)))


def written(value: object) -> str:
    """A value as the command line takes it, to the last digit."""
    if isinstance(value, tuple):
        return ",".join(value)
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value).strip("'")
