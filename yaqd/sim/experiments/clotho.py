"""Clotho's evaluation (Mao et al., 2018; published later as Decima): a learned order of stages against heuristics.

Recorded query graphs of five input sizes, by the rules of the public Decima simulator. Weights were trained on other
seeds. Weighted fair sharing takes its best exponent in hindsight, and others the best options of a small grid.
"""

from typing import Final

from yaqd.sim.experiments.model import Experiment, Measure, Plot, Row
from yaqd.sim.experiments.staging import StagingCase, StagingDrawn

_SOURCE: Final = "Clotho (SysML 2018), section 3"
_COLUMNS: Final = (
    ("stage_jct_s", "mean s", 2),
    ("stage_makespan_s", "makespan s", 1),
    ("stage_decisions", "decisions", 0),
)
_EXPONENTS: Final = tuple(step / 4.0 for step in range(-8, 5))
_CAPS: Final = ((1.0, 0.35), (1.25, 0.35), (1.5, 0.35), (2.0, 0.35), (0.215, 0.65), (0.284, 0.64))


def _weighted(drawn: StagingDrawn) -> tuple[StagingCase, ...]:
    return tuple(
        StagingCase(f"weighted fair {exponent:g}", drawn, "weighted-fair", (("exponent", exponent),))
        for exponent in _EXPONENTS
    )


def _others(drawn: StagingDrawn) -> tuple[StagingCase, ...]:
    return (
        *(StagingCase(name, drawn, name) for name in ("fifo", "shortest", "packing", "trouble")),
        *(
            StagingCase(
                f"weighted fair {exponent:g}, leaves", drawn, "weighted-fair", (("exponent", exponent), ("leaves", 1.0))
            )
            for exponent in _EXPONENTS
        ),
        *(StagingCase(f"capped {c:g} {e:g}", drawn, "capped", (("c", c), ("e", e))) for c, e in _CAPS),
    )


def _against(
    row: str, what: str, cases: tuple[StagingCase, ...], lower: float, case: str = "clotho", metric: str = "stage_jct_s"
) -> Row:
    """Return a row: our mean is lower than the best of these by such a part."""
    labels = tuple(one.label for one in cases)
    measure = Measure(metric, case, labels[0], is_of_means=True, or_against=labels[1:])
    return Row(row, what, measure, sense="at-least", bound=1.0 / (1.0 - lower))


def _experiment(name: str, title: str, setting: str, lower: float, than_best: float | None = None) -> Experiment:
    drawn = StagingDrawn(setting)
    weighted, others = _weighted(drawn), _others(drawn)
    rows = [_against(setting, "weighted fair sharing, best exponent / learned", weighted, lower)]
    if than_best is not None:
        rows.append(
            _against(f"best-heuristic-{setting}", "best of all heuristics / learned", weighted + others, than_best)
        )
    return Experiment(
        name=name,
        title=title,
        source=_SOURCE,
        cases=(StagingCase("clotho", drawn, "clotho"), *weighted, *others),
        rows=tuple(rows),
        plots=(
            Plot(
                "cdf",
                "jobs",
                "Completion times of jobs",
                axis="completion time (s)",
                cases=("fifo", "weighted fair 0", "weighted fair -1", "capped 1.5 0.35", "clotho"),
                log=True,
            ),
        ),
        seeds=1,
        columns=_COLUMNS,
    )


STREAM: Final = _experiment(
    "clotho-stream", "201 jobs that come one after another, 50 executors, load 0.71", "stream", 0.22, 0.06
)
BATCH: Final = _experiment("clotho-batch", "20 jobs at once, 50 executors", "batch", 0.13, 0.03)
PAPER: Final = _experiment("clotho-paper", "10 jobs at once, 100 executors", "paper", 0.08)
CHEAP: Final = _experiment("clotho-cheap-moves", "The stream, where a move takes 0.1 s", "cheap-moves", 0.20)
ESTIMATES: Final = tuple(
    _experiment(
        f"clotho-estimates-{kind}", f"The {kind}, estimates off by a lognormal factor, sigma 0.5",
        f"estimates-{kind}", lower,
    )
    for kind, lower in (("stream", 0.17), ("batch", 0.10))
)  # fmt: skip

CLOTHO: Final = (STREAM, BATCH, PAPER, CHEAP, *ESTIMATES)
