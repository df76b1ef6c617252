"""Curves drawn with matplotlib, which is imported only here."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from yaqd.cli.exits import CommandError
from yaqd.cli.ml.forecast import forecast

#: inches, dots per inch
_SIZE: Final = (8.2, 5.0)
_DPI: Final = 130
#: a prediction reaches so far, as a share of what is known
_AHEAD: Final = 0.25
_AHEAD_LEAST: Final = 10
#: of a loss: matplotlib reckons with differences of a few times it
_DRAWN_MAX: Final = 1e300
#: a legend with more names is small
_NAMES: Final = 12
_NAMES_A_COLUMN: Final = 20


@dataclass(frozen=True, slots=True)
class PlottedCurve:
    """One job: iterations with losses, and with cores where they are known."""

    name: str
    losses: Sequence[tuple[int, float]]
    cores: Sequence[tuple[int, float]] = ()

    def normalized(self) -> "PlottedCurve":
        """Return it with losses from 1 at the begin to 0 at the least; those that never fall rise from 1 to 2."""
        losses = [loss / 2 for _, loss in self.losses]  # halves, as the difference of two numbers may be none
        first, least, most = losses[0], min(losses), max(losses)
        span = first - least or most - first or 1.0
        return PlottedCurve(
            self.name,
            [(at, 1.0 + (loss - first) / span) for (at, _), loss in zip(self.losses, losses, strict=True)],
            self.cores,
        )

    def drawable(self) -> "PlottedCurve":
        """Return it without losses that no axis can hold."""
        return PlottedCurve(
            self.name, [(at, max(-_DRAWN_MAX, min(loss, _DRAWN_MAX))) for at, loss in self.losses], self.cores
        )


def draw(curves: Sequence[PlottedCurve], output: Path, *, normalized: bool) -> None:
    """Write the picture; one curve alone has its prediction, and its cores below. CommandError: no matplotlib."""
    try:
        import matplotlib
    except ImportError:
        raise CommandError("figures need matplotlib: pip install 'yaqd[plots]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [(curve.normalized() if normalized else curve).drawable() for curve in curves]
    has_cores = len(shown) == 1 and bool(shown[0].cores)
    # fixed ids, so that the same curves make the same file
    with plt.rc_context({"svg.hashsalt": output.stem, "axes.grid": True, "grid.alpha": 0.25}):
        heights = (3, 1) if has_cores else (1,)
        figure, axes = plt.subplots(
            len(heights), 1, figsize=_SIZE, layout="constrained", sharex=True, squeeze=False, height_ratios=heights
        )
        _draw_losses(axes[0, 0], shown, "normalized loss" if normalized else "loss")
        if has_cores:
            axes[1, 0].step(*zip(*shown[0].cores, strict=True), where="post", linewidth=1.2, color="C2")
            axes[1, 0].set_ylabel("cores")
            axes[1, 0].set_ylim(bottom=0)
        axes[-1, 0].set_xlabel("iteration")
        figure.savefig(output, dpi=_DPI, metadata={"Date": None} if output.suffix == ".svg" else None)
        plt.close(figure)


def _draw_losses(axes: Any, curves: Sequence[PlottedCurve], label: str) -> None:
    for curve in curves:
        axes.plot(*zip(*curve.losses, strict=True), label=curve.name, linewidth=1.2)
    if len(curves) == 1:
        _draw_forecast(axes, curves[0])
    axes.set_ylabel(label)
    columns = 1 + len(curves) // _NAMES_A_COLUMN
    axes.legend(fontsize=7 if len(curves) > _NAMES else 9, ncols=columns)


def _draw_forecast(axes: Any, curve: PlottedCurve) -> None:
    found = forecast(curve.losses, max(_AHEAD_LEAST, round(_AHEAD * len(curve.losses))))
    if found is None:
        return
    low = [loss - off for loss, off in zip(found.losses, found.off, strict=True)]
    high = [loss + off for loss, off in zip(found.losses, found.off, strict=True)]
    axes.plot(found.iterations, found.losses, "--", color="C1", linewidth=1.2, label="predicted")
    axes.fill_between(found.iterations, low, high, color="C1", alpha=0.2, linewidth=0, label="9 of 10 predictions")
