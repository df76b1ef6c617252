"""What a streaming job runs as mapper, combiner and reducer: commands, checked before anything starts."""

from typing import Final

from tez_adapter.client.staging import SubmitError
from tez_adapter.jobspec import Streaming
from tez_adapter.streaming.script_command import split_command

NO_REDUCES: Final = "NONE"
_IDENTITY_REDUCERS: Final = ("org.apache.hadoop.mapred.lib.IdentityReducer",)


def streaming_commands(mapper: str, reducer: str, combiner: str) -> Streaming:
    """Raises SubmitError for what is no command."""
    return Streaming(_command("mapper", mapper), _reducer(reducer), _command("combiner", combiner))


def _reducer(text: str) -> str:
    if text == NO_REDUCES or text in _IDENTITY_REDUCERS:
        return ""
    if text.lower() == "aggregate":
        raise SubmitError("-reducer aggregate is a Java package of Hadoop's, which cannot run here: send a program")
    return _command("reducer", text)


def _command(role: str, text: str) -> str:
    words = split_command(text)
    if text and not words:
        raise SubmitError(f"-{role} {text!r} has no words: give a command, as in -{role} cat")
    if words and words[0].startswith("org.apache.hadoop."):
        raise SubmitError(f"-{role} {words[0]} is a Java class, which cannot run here: send a program")
    return text
