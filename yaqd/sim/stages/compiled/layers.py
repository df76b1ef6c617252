"""Layers of the network, compiled. Vectors lie in one scratch array; `at` says where."""

from yaqd.policies.clotho.shapes import EMB, HID, LEAK
from yaqd.policies.curves.samples import Floats
from yaqd.sim.stages.compiled.jit import jit


@jit
def add_product(weights: Floats, at: int, inputs: int, outputs: int, x: Floats, out: Floats) -> None:
    """Add the product of x and a matrix to out."""
    for i in range(inputs):
        value = x[i]
        if value != 0.0:
            for o in range(outputs):
                out[o] += value * weights[at + i * outputs + o]


@jit
def copy(x: Floats, out: Floats, many: int) -> None:
    """Copy the first so many numbers."""
    for i in range(many):
        out[i] = x[i]


@jit
def leak(x: Floats, many: int) -> None:
    """Apply the leaky rectifier."""
    for i in range(many):
        if x[i] < 0.0:
            x[i] *= LEAK


@jit
def two_layers(weights: Floats, at: int, inputs: int, x: Floats, hidden: Floats, out: Floats) -> None:
    """Set out to f(x): a hidden layer and a linear one, whose weights begin at `at`."""
    bias = at + inputs * HID
    for o in range(HID):
        hidden[o] = weights[bias + o]
    add_product(weights, at, inputs, HID, x, hidden)
    leak(hidden, HID)
    last = bias + HID
    for o in range(EMB):
        out[o] = weights[last + HID * EMB + o]
    add_product(weights, last, HID, EMB, hidden, out)
