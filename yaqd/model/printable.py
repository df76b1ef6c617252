"""Texts of others, as a line can show them."""


def printable(text: str) -> str:
    """Return the text with a question mark for each character that is not printable, as those that end a line."""
    return "".join(one if one.isprintable() else "?" for one in text)
