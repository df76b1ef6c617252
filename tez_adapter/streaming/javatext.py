"""How Java writes text and numbers, where its output is to be met byte for byte."""

import math
import re
from typing import Any

import numpy as np

#: Java's decoder replaces these as one, Python's replaces each byte
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\ufffd".encode()
_DECIMAL_FROM = 1e-3
_DECIMAL_BELOW = 1e7


def valid_utf8(data: bytes) -> bytes:
    """Return the bytes as a Java string would write them again: what is no UTF-8 becomes U+FFFD."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(_REPLACEMENT, data).decode("utf-8", "replace").encode()
    return data


def float_text(value: "np.floating[Any]") -> str:
    """Write a number as Double.toString and Float.toString do.

    Their digits are the fewest that tell the number (Java 19 and later).
    """
    number = float(value)
    if math.isnan(number):
        return "NaN"
    sign = "-" if math.copysign(1, number) < 0 else ""
    if math.isinf(number):
        return f"{sign}Infinity"
    if number == 0:
        return f"{sign}0.0"
    shown = np.format_float_scientific(abs(value), unique=True, trim="-")
    if "." not in shown:  # of two digits Java takes the nearest
        shown = f"{abs(number):.1e}"
    mantissa, _, exponent_text = shown.partition("e")
    digits, exponent = mantissa.replace(".", "").rstrip("0"), int(exponent_text)
    if not _DECIMAL_FROM <= abs(number) < _DECIMAL_BELOW:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
