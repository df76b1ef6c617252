"""A job takes along which machine code its submitter's libraries compute with."""

import re

from nm.launch import prepare
from yaqd.ml import kernels


def test_what_is_chosen_is_taken_along_and_nothing_else() -> None:
    said = {"OPENBLAS_CORETYPE": "Haswell", "MKL_CBWR": "", "HOME": "/root", "OPENBLAS_NUM_THREADS": "8"}
    assert kernels.chosen(said) == {"OPENBLAS_CORETYPE": "Haswell"}


def test_a_prepared_process_that_has_loaded_them_already_is_not_taken_then() -> None:
    forces_cold: re.Pattern[str] = prepare._FORCES_COLD
    assert all(forces_cold.match(name) for name in kernels.VARIABLES)
