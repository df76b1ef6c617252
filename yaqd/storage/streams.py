"""Reading a file piece by piece where the file system gives chunks."""

from collections.abc import Iterator


class ChunkReader:
    """`read` over an iterator of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int = -1, /) -> bytes:
        """`size` bytes, fewer only at the end of the file; all that is left if `size` is negative."""
        if size < 0:
            data = b"".join((self._rest, *self._chunks))
            self._rest = b""
            return data
        parts, have = [self._rest], len(self._rest)
        while have < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            parts.append(chunk)
            have += len(chunk)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]

    def close(self) -> None:
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()
        self._chunks = iter(())
        self._rest = b""

    def __enter__(self) -> "ChunkReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
