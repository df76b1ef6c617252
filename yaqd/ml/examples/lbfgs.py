"""scipy's L-BFGS over partitions: it calls the objective itself, so its jobs have `run(evaluate)`."""

from collections.abc import Callable, Sequence
from typing import Any

from scipy.optimize import OptimizeResult, minimize

from yaqd.ml import report
from yaqd.ml.iterative import Evaluate

#: returns loss and gradient of a point, out of its partials
Combined = Callable[[Any, Sequence[Any]], tuple[float, Any]]


def minimized(evaluate: Evaluate, combined: Combined, start: Any, iterations: int) -> Any:
    """Return the point that L-BFGS reaches in so many iterations, or where it ends before that, or is told to stop.

    Reports the loss of the start as iteration 0, which is none. An iteration may take several evaluations.
    """
    done = -1

    def told(loss: float) -> bool:
        nonlocal done
        done += 1
        return report(iteration=done, loss=loss).stop

    def objective(point: Any) -> tuple[float, Any]:
        loss, gradient = combined(point, evaluate(point))
        if done < 0:
            told(loss)
        return loss, gradient

    def iterated(intermediate_result: OptimizeResult) -> None:
        if told(float(intermediate_result.fun)):
            raise StopIteration

    limits = {"maxiter": iterations, "maxfun": 20 * iterations, "ftol": 0.0, "gtol": 1e-12}
    return minimize(objective, start, jac=True, method="L-BFGS-B", callback=iterated, options=limits).x
