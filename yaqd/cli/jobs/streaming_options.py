"""Hadoop Streaming's command line, whose options have one dash and long names.

Click reads `-input` as a bundle of one-letter options, so this is parsed by hand. Names, repetition and meaning are
Hadoop Streaming's; its generic options (`-D`, `-files`, `-archives`) may stand anywhere here, where Hadoop wants them
first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from yaqd.cli.exits import CommandError

#: Formats by the option that names one, as Hadoop's users write them.
_FORMATS = {
    "-inputformat": ("TextInputFormat", "org.apache.hadoop.mapred.TextInputFormat"),
    "-outputformat": ("TextOutputFormat", "org.apache.hadoop.mapred.TextOutputFormat"),
}
#: What both sides of mapper and reducer are written in; -io names it for all.
_STREAMS = ("stream.map.input", "stream.map.output", "stream.reduce.input", "stream.reduce.output")
_DEBUG = "runs a script where a task has failed, which is not done here: `yaq app logs` has what the task said"
#: Options that Hadoop Streaming has, and why they are not here.
_ABSENT = {
    "-inputreader": "names a Java class, which cannot run here: input is read as lines",
    "-libjars": "sends Java classes along, which cannot run here",
    "-mapdebug": _DEBUG,
    "-reducedebug": _DEBUG,
    "-lazyOutput": "leaves out empty output files, which is not done here: every task writes its own",
}
#: Options without a value; the last three are our own.
_FLAGS = ("-verbose", "-debug", "-background", "-overwrite", "-quiet", "-json")
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
    "-fs",
    "-inputformat",
    "-io",
    "-jobconf",
    "-mapper",
    "-numReduceTasks",
    "-output",
    "-outputformat",
    "-partitioner",
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
    #: of `defines`, those that another option than -D set
    named_by: dict[str, str] = field(default_factory=dict)
    conf_dir: str | None = None
    #: return once the job is submitted
    is_background: bool = False
    #: results of an earlier job make room
    overwrite: bool = False
    is_quiet: bool = False
    as_json: bool = False


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
    if name in _ABSENT:
        return f"yaq mr streaming: {word} {_ABSENT[name]}; leave it out"
    import difflib

    near = difflib.get_close_matches(name, (*_VALUED, *_FLAGS), 1)
    hint = f"did you mean {near[0]}?" if near else "see `yaq mr streaming --help`"
    kind = "option" if word.startswith("-") else "word"
    return f'yaq mr streaming: unknown {kind} "{word}"; {hint}'


def _apply(options: StreamingOptions, name: str, value: str) -> None:
    match name:
        case "-input":
            options.inputs.extend(_paths(value))
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
            key, text = _pair(name, value)
            options.defines[key] = text
            options.named_by.pop(key, None)
        case "-queue":
            _define(options, name, "mapreduce.job.queuename", value)
        case "-conf":
            options.conf_dir = value
        case "-inputformat" | "-outputformat":
            if value not in _FORMATS[name]:
                raise CommandError(f"yaq mr streaming: {name} {value}: only {_FORMATS[name][0]} is there")
        case "-io":
            for key in _STREAMS:
                _define(options, name, key, value)
        case "-partitioner":
            _define(options, name, "mapred.partitioner.class", value)
        case "-fs":
            _define(options, name, "fs.defaultFS", value)
        case _:
            _set_flag(options, name)


def _set_flag(options: StreamingOptions, name: str) -> None:
    """Takes the options without a value; those about Hadoop's own messages say nothing here."""
    match name:
        case "-background":
            options.is_background = True
        case "-overwrite":
            options.overwrite = True
        case "-quiet":
            options.is_quiet = True
        case "-json":
            options.as_json = True


def _define(options: StreamingOptions, name: str, key: str, value: str) -> None:
    options.defines[key] = value
    options.named_by[key] = name


def _commas(value: str) -> list[str]:
    return [word for word in value.split(",") if word]


def _paths(value: str) -> list[str]:
    """As `_commas`, but that those within braces belong to a pattern (Hadoop's FileInputFormat.getPathStrings, which
    takes the rest for one where a brace is not closed)."""
    paths = [""]
    depth, is_pattern = 0, False
    for char in value:
        depth += (char == "{") - (char == "}")
        is_pattern = char == "{" or (is_pattern and not (char == "}" and depth == 0))
        if char == "," and not is_pattern:
            paths.append("")
        else:
            paths[-1] += char
    return [path for path in paths if path]


def _pair(name: str, value: str) -> tuple[str, str]:
    key, equals, text = value.partition("=")
    if not equals or not key:
        raise CommandError(f"yaq mr streaming: {name} {value}: write it as {name} NAME=VALUE")
    return key, text


def _count(name: str, value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise CommandError(f"yaq mr streaming: {name} {value}: not a whole number from 0")
    return int(value)
