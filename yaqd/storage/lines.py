"""Which lines of a file belong to a split, found in large blocks instead of line by line.

The rule is that of Hadoop's LineRecordReader. A line ends at LF, CR LF or a lone CR, or where the file does. A split
that starts at 0 owns the lines that start in [0, end]; any other drops what comes first, up to a line end, and owns the
lines that start in (start, end]. So splits own each line exactly once wherever they are cut, even between CR and LF.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

#: Hadoop's default of mapreduce.input.linerecordreader.line.maxlength: no line is too long
LINE_BYTES_MAX: Final = (1 << 31) - 1

_LF: Final = 10
_CR: Final = 13


#: the end of a split, None while it is not reached
Ends = Callable[[], int | None]


def owned_blocks(
    chunks: Iterable[bytes], start: int, end: "int | Ends | None", line_bytes_max: int = LINE_BYTES_MAX
) -> Iterator[tuple[int, bytes]]:
    """Return blocks of whole lines, each with the offset in the file of its first byte.

    `chunks` are the file's bytes from `start` on, beyond `end` as far as they are asked for. Only the last block of a
    file may lack its line end. An `end` that is known only when it is reached is asked for after each chunk. A line
    that grows past `line_bytes_max` before its end is seen is dropped, as Hadoop does, so that memory stays bounded.
    """
    ends, end = (end, None) if callable(end) else (None, end)
    held: list[bytes] = []  # the beginning of a line, or a CR whose LF may come
    held_bytes = 0
    offset = start  # of the first byte held
    is_dropping = start > 0
    for chunk in _split_after_cr(chunks):
        end = ends() if ends is not None else end
        cut = _last_line_end(chunk)
        if held_bytes > line_bytes_max:
            offset += held_bytes
            held, held_bytes, is_dropping = [], 0, True
        if cut == 0:
            if is_dropping:
                offset += len(chunk)
                if end is not None and offset > end:
                    return  # inside one line from here to beyond the end
            else:
                held.append(chunk)
                held_bytes += len(chunk)
            continue
        block = b"".join((*held, chunk[:cut])) if held else chunk[:cut]
        held = [chunk[cut:]] if cut < len(chunk) else []
        held_bytes = len(chunk) - cut
        if is_dropping:
            first = _line_end(block, 0)
            offset, block, is_dropping = offset + first, block[first:], False
        if end is not None and offset + len(block) > end:
            if offset <= end:
                yield offset, block[: _line_end(block, max(end - offset, 0))]
            return
        if block:
            yield offset, block
            offset += len(block)
    if held and not is_dropping and held_bytes <= line_bytes_max and (end is None or offset <= end):
        yield offset, b"".join(held)


def _split_after_cr(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of which none ends between CR and LF."""
    has_cr = False
    for chunk in chunks:
        if has_cr:
            chunk = b"\r" + chunk
        has_cr = chunk.endswith(b"\r")
        if has_cr:
            chunk = chunk[:-1]
        if chunk:
            yield chunk
    if has_cr:
        yield b"\r"


def _last_line_end(chunk: bytes) -> int:
    """Where the last whole line of a chunk ends, 0 if none does. A CR at its end is a line end: no LF follows it."""
    return max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1


def _line_end(block: bytes, at: int) -> int:
    """The end of the line whose end mark is the first at or after `at`; the block's end if there is none."""
    lf = block.find(b"\n", at)
    cr = block.find(b"\r", at, lf if lf >= 0 else len(block))
    if cr < 0:
        return lf + 1 if lf >= 0 else len(block)
    return cr + 2 if block[cr + 1 : cr + 2] == b"\n" else cr + 1
