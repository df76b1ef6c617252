"""Hadoop Streaming's command line, whose options have one dash and long names.

Click reads `-input` as a bundle of one-letter options, so this is parsed by hand. Names, repetition and meaning are
Hadoop Streaming's; its generic options (`-D`, `-files`, `-archives`) may stand anywhere here, where Hadoop wants them
first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from yaqd.cli.exits import CommandError

_TEXT_FORMATS = ("TextInputFormat", "TextOutputFormat")
#: Options that stock streaming has and that mean Java classes here.
_JAVA_ONLY = ("-partitioner", "-inputreader", "-io", "-libjars", "-mapdebug", "-reducedebug")
#: Options without a value.
_FLAGS = ("-verbose", "-background", "-lazyOutput")
_VALUED = (
    "-D",
    "-archives",
    "-cacheArchive",
    "-cacheFile",
    "-cmdenv",
    "-combiner",
    "-conf",
    "-file",
    "-files",
    "-input",
    "-inputformat",
    "-jobconf",
    "-mapper",
    "-numReduceTasks",
    "-output",
    "-outputformat",
    "-queue",
    "-reducer",
)


@dataclass(slots=True)
class StreamingOptions:
    """What the command line says; the job manager's own types come later."""

    inputs: list[str] = field(default_factory=list)
    output: str = ""
    mapper: str = ""
    #: "" for none
    combiner: str = ""
    #: "NONE" means no reduce phase, "" the identity
    reducer: str = ""
    #: None: as configured
    reduces: int | None = None
    files: list[str] = field(default_factory=list)
    archives: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    defines: dict[str, str] = field(default_factory=dict)
    conf_dir: str | None = None
    #: return once the job is submitted
    is_background: bool = False


def parse_streaming(words: Sequence[str]) -> StreamingOptions:
    """Raises CommandError with the option and the remedy."""
    options = StreamingOptions()
    for name, value in _pairs(words):
        _apply(options, name, value)
    for missing in (name for name, value in _required(options) if not value):
        raise CommandError(f"yaq mr streaming: {missing} is missing (see `yaq mr streaming --help`)")
    return options


def _required(options: StreamingOptions) -> tuple[tuple[str, object], ...]:
    return (("-input", options.inputs), ("-output", options.output), ("-mapper", options.mapper))


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    rest = iter(words)
    for word in rest:
        # Two dashes are what other commands use, and -Dkey=value what fingers type.
        name = "-" + word.lstrip("-") if word.startswith("--") else word
        if name.startswith("-D") and name != "-D":
            yield "-D", name[2:]
        elif name in _FLAGS:
            yield name, ""
        elif name in _VALUED:
            value = next(rest, None)
            if value is None:
                raise CommandError(f"yaq mr streaming: {word} needs a value")
            yield name, value
        else:
            raise CommandError(_unknown(name, word))


def _unknown(name: str, word: str) -> str:
    if name in _JAVA_ONLY:
        return f"yaq mr streaming: {word} names Java classes, which there are none of here"
    import difflib

    near = difflib.get_close_matches(name, (*_VALUED, *_FLAGS), 1)
    hint = f"did you mean {near[0]}?" if near else "see `yaq mr streaming --help`"
    kind = "option" if word.startswith("-") else "word"
    return f'yaq mr streaming: unknown {kind} "{word}"; {hint}'


def _apply(options: StreamingOptions, name: str, value: str) -> None:
    match name:
        case "-input":
            options.inputs.extend(_commas(value))
        case "-output":
            options.output = value
        case "-mapper":
            options.mapper = value
        case "-combiner":
            options.combiner = value
        case "-reducer":
            options.reducer = value
        case "-numReduceTasks":
            options.reduces = _count(name, value)
        case "-file" | "-cacheFile":
            options.files.append(value)
        case "-files":
            options.files.extend(_commas(value))
        case "-archives" | "-cacheArchive":
            options.archives.extend(_commas(value))
        case "-cmdenv":
            options.environment.update([_pair(name, value)])
        case "-D" | "-jobconf":
            options.defines.update([_pair(name, value)])
        case "-queue":
            options.defines["mapreduce.job.queuename"] = value
        case "-conf":
            options.conf_dir = value
        case "-inputformat" | "-outputformat":
            if value.rpartition(".")[2] not in _TEXT_FORMATS:
                raise CommandError(f"yaq mr streaming: {name} {value}: only {' and '.join(_TEXT_FORMATS)} are there")
        case "-background":
            options.is_background = True


def _commas(value: str) -> list[str]:
    return [word for word in value.split(",") if word]


def _pair(name: str, value: str) -> tuple[str, str]:
    key, equals, text = value.partition("=")
    if not equals or not key:
        raise CommandError(f"yaq mr streaming: {name} {value}: write it as {name} NAME=VALUE")
    return key, text


def _count(name: str, value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise CommandError(f"yaq mr streaming: {name} {value}: not a whole number from 0")
    return int(value)
