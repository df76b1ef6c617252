"""A case on each side: by the plain model, in one process, on the cluster, on stock Hadoop Streaming."""

import contextlib
import gzip
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.differential.diff_case import Case, Outcome, Program, Scripts
from tests.differential.diff_commands import Commands, Said
from tests.differential.diff_reading import Range
from tests.differential.diff_stock import StockStreaming
from yaqd.config import Configuration
from yaqd.mapreduce import InputFormat
from yaqd.storage import compute_splits, compute_streaming_splits

_TIMEOUT_S = 240.0


class CaseFolder:
    """The files of one case: its input and program, and the outputs of all sides."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        self.folder = folder
        self.input = folder / "input"
        self.input.mkdir(parents=True)
        for name, data in case.files.items():
            (self.input / name).write_bytes(data)
        program = case.program
        if isinstance(program, Program):
            self.script = folder / "generated.py"
            self.script.write_text(program.source)
        else:
            for name, text in program.files.items():
                (folder / name).write_text(text)
            for attribute in ("mapper", "combiner", "reducer"):
                setattr(program, attribute, getattr(program, attribute).replace("{dir}", str(folder)))

    def splits(self) -> list[list[Range]]:
        """Of our own engines, checked to hold every byte once."""
        program = self.case.program
        conf = Configuration.load(environ={}).with_overrides(self.case.defines, source="case")
        if isinstance(program, Scripts):
            splits = compute_streaming_splits([str(self.input)], conf)
        else:
            text = program.source.split("input_format = ")[1].split("'")[1]
            splits = compute_splits([str(self.input)], InputFormat.parse(text), conf)
        ranges = [[(_path(r.path), r.start, r.length) for r in split.ranges] for split in splits]
        self._check_cover([piece for split in ranges for piece in split])
        return ranges

    def _check_cover(self, ranges: Sequence[Range]) -> None:
        ends: dict[Path, int] = {}
        for path, start, length in sorted(ranges):
            assert start == ends.get(path, 0), f"{path} is not covered at {ends.get(path, 0)}"
            ends[path] = start + length
        for name, data in self.case.files.items():
            if not name.startswith(("_", ".")):
                assert ends.get(self.input / name, 0) == len(data), f"{name} is not covered to its end"

    def local(self, commands: Commands) -> Outcome:
        output = self.folder / "local"
        words = ["mr", "local", *self._job_words(output)]
        return _ours(commands.yaq(self.folder / "said-local", *words, timeout_s=_TIMEOUT_S), output)

    def cluster(self, commands: Commands, conf: Path) -> Outcome:
        output = self.folder / "cluster"
        name = f"diff-{self.case.seed}-{self.case.number}"
        if isinstance(self.case.program, Scripts):
            words = [
                "mr",
                "streaming",
                "--json",
                "-D",
                f"mapreduce.job.name={name}",
                *self._streaming_words(output, self.case.defines),
            ]
        else:
            inject = ("-D", f"inject={self.case.inject}") if self.case.inject else ()
            words = ["mr", "submit", "--name", name, *inject, *self._job_words(output)]
        said = commands.yaq(self.folder / "said-cluster", *words, conf=conf, timeout_s=_TIMEOUT_S)
        if said.exit_code < 0:
            self._end(commands, conf, name)
        return _ours(said, output)

    def stock(self, stock: StockStreaming) -> Outcome:
        output = self.folder / "stock"
        ours_alone = ("mapreduce.map.output.compress.codec", "mapreduce.map.output.compress")
        kept = {key: value for key, value in self.case.defines.items() if key not in ours_alone}
        if not stock.on_daemons:
            # its local runner always hopes for one map: blocks as large as splits are to be give as many
            total = sum(len(data) for name, data in self.case.files.items() if not name.startswith(("_", ".")))
            kept["fs.local.block.size"] = str(max(1, total // int(kept.get("mapreduce.job.maps", "2"))))
        code, state, counters = stock.run(self._streaming_words(output, kept), _TIMEOUT_S)
        short = _short_groups(counters)
        return Outcome(state == "SUCCEEDED", _parts(output), short, int(code != 0), [state], [])

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _job_words(self, output: Path) -> list[str]:
        defines = [word for key, value in self.case.defines.items() for word in ("-D", f"{key}={value}")]
        places = ["--input", str(self.input), "--output", str(output), "--reduces", str(self.case.reduces)]
        return [f"{self.script}:Generated", "--json", *places, *defines]

    def _streaming_words(self, output: Path, defines: Mapping[str, str]) -> list[str]:
        program = self.case.program
        assert isinstance(program, Scripts)
        settings = {"mapreduce.job.reduces": str(self.case.reduces), **defines}
        words = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        words += ["-input", str(self.input), "-output", str(output), "-mapper", program.mapper]
        for option, command in (("-combiner", program.combiner), ("-reducer", program.reducer)):
            words += [option, command] if command else []
        return words

    def _end(self, commands: Commands, conf: Path, name: str) -> None:
        """A job that hangs must not hold what others need."""
        listed = commands.yaq(self.folder / "said-list", "app", "list", "--json", conf=conf)
        with contextlib.suppress(ValueError, KeyError, TypeError):
            for app in json.loads(listed.out):
                if app.get("name") == name:
                    commands.yaq(self.folder / "said-kill", "app", "kill", app["application_id"], conf=conf)


def _path(uri: str) -> Path:
    from urllib.parse import unquote

    plain = uri.removeprefix("file://")
    return Path(plain) if Path(plain).exists() else Path(unquote(plain))


def _ours(said: Said, output: Path) -> Outcome:
    if said.exit_code < 0:
        return Outcome(False, exit_code=said.exit_code, messages=[f"did not end within {_TIMEOUT_S:g} s", said.err])
    try:
        told: dict[str, Any] = json.loads(said.out)
    except ValueError:
        told = {}
    succeeded = said.exit_code == 0
    messages = [] if succeeded else [str(told.get("diagnostics", "")), said.err]
    state = "SUCCEEDED" if succeeded else "FAILED"
    counters = _short_groups(told.get("counters", {}))
    return Outcome(succeeded, _parts(output), counters, said.exit_code, messages, _left(output, state))


def _short_groups(counters: Mapping[str, Mapping[str, int]]) -> dict[str, Mapping[str, int]]:
    return {group.rpartition(".")[2]: dict(names) for group, names in counters.items()}


def _parts(output: Path) -> dict[str, bytes]:
    parts = {}
    for file in sorted(output.glob("part-*")) if output.is_dir() else ():
        data = file.read_bytes()
        parts[file.name.removesuffix(".gz")] = gzip.decompress(data) if file.suffix == ".gz" else data
    return parts


def _left(output: Path, state: str) -> list[str]:
    """What should not be there: anything at all of a job that failed, but for stock's empty folder."""
    names = sorted(file.name for file in output.iterdir() if not file.name.endswith(".crc")) if output.is_dir() else []
    if state != "SUCCEEDED":
        return names
    absent = [] if "_SUCCESS" in names else ["no _SUCCESS"]
    return absent + [name for name in names if not name.startswith("part-") and name != "_SUCCESS"]
