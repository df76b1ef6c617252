"""The layout of the network: names, shapes and places of its weights in one flat array.

Three levels pass messages: stages along edges, stages to their job, jobs to all. Each level has its own f and g, of one
hidden layer each. Two heads read the embeddings: one scores stages, one says how many containers a job should have.
Both have linear scores of plain features beside their hidden layer.
"""

from itertools import pairwise
from math import prod
from typing import Final

#: features of a stage, of a job, and of the cluster
RAW: Final = 8
JOB_RAW: Final = 8
CLUSTER: Final = 6
#: length of embeddings, and of the hidden layers of f and g, and of the heads
EMB: Final = 8
HID: Final = 8
HEAD: Final = 8
#: features that a head sees beside embeddings
WIDE: Final = 25
LIMIT_WIDE: Final = 15
#: slope of the leaky rectifier below 0
LEAK: Final = 0.2


def _two(name: str, inputs: int) -> list[tuple[str, tuple[int, ...]]]:
    return [
        (f"{name}_hidden", (inputs, HID)),
        (f"{name}_hidden_bias", (HID,)),
        (f"{name}_out", (HID, EMB)),
        (f"{name}_out_bias", (EMB,)),
    ]


SHAPES: Final[tuple[tuple[str, tuple[int, ...]], ...]] = (
    ("enter", (RAW, EMB)),
    ("enter_bias", (EMB,)),
    *_two("stage_f", EMB),
    *_two("stage_g", EMB),
    *_two("job_f", RAW + EMB),
    *_two("job_g", EMB),
    *_two("cluster_f", JOB_RAW + EMB),
    *_two("cluster_g", EMB + CLUSTER),
    ("score_stage", (RAW + EMB, HEAD)),
    ("score_job", (EMB, HEAD)),
    ("score_cluster", (EMB, HEAD)),
    ("score_wide", (WIDE, HEAD)),
    ("score_bias", (HEAD,)),
    ("score_out", (HEAD,)),
    ("score_linear", (WIDE,)),
    ("limit_job", (EMB, HEAD)),
    ("limit_cluster", (EMB, HEAD)),
    ("limit_wide", (LIMIT_WIDE, HEAD)),
    ("limit_bias", (HEAD,)),
    ("limit_out", (HEAD,)),
    ("limit_linear", (LIMIT_WIDE,)),
)


def _places() -> dict[str, int]:
    places, at = {}, 0
    for name, shape in SHAPES:
        places[name] = at
        at += prod(shape)
    return places


#: where each array begins in the flat one
AT: Final = _places()
#: numbers in all
SIZE: Final = sum(prod(shape) for _, shape in SHAPES)

assert all(a < b for a, b in pairwise(AT.values()))
