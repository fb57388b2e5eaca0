"""A thin layer over CP-SAT's core, whose modelling layer would import pandas for a second."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from .linear import AFTER_THE_END, INFINITY, MixedProgram

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from cms.plugin.algorithm import Budget

#: CP-SAT's own limit on the values of variables and of linear expressions is 2**63; stay clear.
LARGEST = 2**60
#: With its default settings CP-SAT can stand at bound 0 on these models for minutes; they need the
#: linear relaxation, which this level brings with a single worker, and which a subsolver has to be
#: named for with several.
_LINEARIZATION_LEVEL = 2
#: Seconds between two calls that stop the solver.
_POLL_SECONDS = 0.01


class TooLarge(Exception):
    """A number of the program leaves the solver's range; the program cannot be built."""


class Outcome(NamedTuple):
    """How a solve ended: optimal, feasible, infeasible or unknown, and with what."""

    status: str
    values: tuple[int, ...] | None
    bound: int | None


class Hint(NamedTuple):
    """What SCIP found, checked, or None; and whether it came to an end, which proves nothing."""

    values: tuple[int, ...] | None
    ended: bool


class Program:
    """An integer program over variables >= 0; TooLarge where sums could leave CP-SAT's range."""

    def __init__(self) -> None:
        from ortools.sat.python import cp_model_helper

        self._core = cp_model_helper
        self._model = cp_model_helper.CpModelProto()
        self._highs: list[int] = []

    def variable(self, high: int) -> int:
        """Add a variable between 0 and ``high``; returns its number."""
        if high >= LARGEST:
            raise TooLarge
        self._model.variables.add().domain.extend([0, high])
        self._highs.append(high)
        return len(self._highs) - 1

    def high(self, variable: int) -> int:
        """Return the upper bound of a variable."""
        return self._highs[variable]

    def at_least(self, terms: Mapping[int, int], least: int) -> None:
        """Add ``sum of coefficient * variable >= least``."""
        self._linear(terms, least, LARGEST)

    def at_most(self, terms: Mapping[int, int], most: int) -> None:
        """Add ``sum of coefficient * variable <= most``."""
        self._linear(terms, -LARGEST, most)

    def equals(self, terms: Mapping[int, int], value: int) -> None:
        """Add ``sum of coefficient * variable == value``."""
        self._linear(terms, value, value)

    def _open(self, terms: Mapping[int, int]) -> dict[int, int]:
        """Leave out variables that can only be 0, however large their coefficients are."""
        return {v: factor for v, factor in terms.items() if self._highs[v]}

    def _fits(self, terms: Mapping[int, int], *values: int) -> bool:
        """Whether sums stay within the solver's range."""
        reach = sum(abs(factor) * self._highs[v] for v, factor in terms.items())
        return max(reach, *map(abs, values)) <= LARGEST

    def _linear(self, terms: Mapping[int, int], least: int, most: int) -> None:
        terms = self._open(terms)
        if not self._fits(terms, least, most):
            # What no values break is left out; only here, as SCIP's path hangs on the rows it gets.
            low = sum(f * self._highs[v] for v, f in terms.items() if f < 0)
            high = sum(f * self._highs[v] for v, f in terms.items() if f > 0)
            least = -LARGEST if least <= low else least
            most = LARGEST if most >= high else most
            if least == -LARGEST and most == LARGEST:
                return
            if not self._fits(terms, least, most):
                raise TooLarge
        linear = self._model.constraints.add().linear
        linear.vars.extend(list(terms))
        linear.coeffs.extend(list(terms.values()))
        linear.domain.extend([least, most])

    def minimise(self, terms: Mapping[int, int]) -> None:
        """Set the objective."""
        terms = self._open(terms)
        if not self._fits(terms, 0):
            raise TooLarge
        self._model.objective.vars.extend(list(terms))
        self._model.objective.coeffs.extend(list(terms.values()))

    def solve(
        self, budget: Budget, workers: int = 1, *, effort: float | None = None, wrapper: Any = None
    ) -> Outcome:
        """Solve within the budget, or an effort in CP-SAT's deterministic time (about seconds)."""
        core = self._core
        wrapper = wrapper or core.SolveWrapper()
        parameters = core.SatParameters()
        parameters.num_workers = workers
        parameters.linearization_level = _LINEARIZATION_LEVEL
        if workers > 1:
            parameters.subsolvers.extend(["max_lp", "default_lp"])
        parameters.random_seed = budget.seed % 2**31
        parameters.catch_sigint_signal = False
        # Ask for the optimum itself: default gaps accept a machine too many among ten thousand.
        parameters.relative_gap_limit = 0.0
        parameters.absolute_gap_limit = 0.0
        if effort is not None:
            parameters.max_deterministic_time = effort
        left = budget.remaining()
        if left <= 0:
            return Outcome("unknown", None, None)
        if left != float("inf"):
            parameters.max_time_in_seconds = left + AFTER_THE_END
        wrapper.set_parameters(parameters)
        with budget.on_stop(wrapper.stop_search):
            response = wrapper.solve(self._model)
        status = response.status.name.lower()
        if status == "model_invalid":
            raise AssertionError("CP-SAT calls the model invalid: a coefficient is out of range")
        has_values = status in ("optimal", "feasible")
        values = tuple(response.solution) if has_values else None
        bound = None if status == "infeasible" else int(response.inner_objective_lower_bound)
        return Outcome(status, values, bound)

    def search(self, budget: Budget, *, nodes: int, cuts: bool = True) -> Hint:
        """Look for a good solution with SCIP, which is checked; none proves nothing.

        Where machines have costs SCIP finds in milliseconds what CP-SAT needs seconds for.
        """
        program = MixedProgram()
        aim = self._model.objective
        costs = dict(zip(aim.vars, aim.coeffs, strict=True))
        for variable, high in enumerate(self._highs):
            program.variable(costs.get(variable, 0), high=high, whole=True)
        for linear in (constraint.linear for constraint in self._model.constraints):
            low, high = linear.domain
            program.row(
                zip(linear.vars, linear.coeffs, strict=True),
                low=low if low > -LARGEST else -INFINITY,
                high=high if high < LARGEST else INFINITY,
            )
        found, ended = program.search(budget, nodes=nodes, cuts=cuts)
        if found is None:
            return Hint(None, ended)
        values = tuple(map(round, found))
        return Hint(values, ended) if self._holds(values) else Hint(None, ended=False)

    def _holds(self, values: Sequence[int]) -> bool:
        """Whether values keep all constraints, exactly."""
        for linear in (constraint.linear for constraint in self._model.constraints):
            total = sum(f * values[v] for v, f in zip(linear.vars, linear.coeffs, strict=True))
            if not linear.domain[0] <= total <= linear.domain[1]:
                return False
        return all(0 <= value <= high for value, high in zip(values, self._highs, strict=True))

    def improvements(
        self, budget: Budget, workers: int = 1
    ) -> Generator[tuple[int, ...] | Outcome, None, None]:
        """Yield each better solution while the solver works, the outcome last; closing stops it."""
        found: queue.SimpleQueue[tuple[int, ...] | Outcome | BaseException] = queue.SimpleQueue()
        wrapper = self._core.SolveWrapper()
        count = len(self._highs)

        class Watcher(self._core.SolutionCallback):  # type: ignore[misc,name-defined]
            def OnSolutionCallback(self) -> None:  # noqa: N802  # the name the solver calls
                found.put(tuple(self.SolutionIntegerValue(i) for i in range(count)))

        watch = Watcher()
        wrapper.add_solution_callback(watch)

        def work() -> None:
            try:
                found.put(self.solve(budget, workers, wrapper=wrapper))
            except BaseException as fault:  # noqa: BLE001  # raised again in the caller's thread
                found.put(fault)

        solver = threading.Thread(target=work, name="cp-sat", daemon=True)
        solver.start()
        try:
            while True:
                item = found.get()
                if isinstance(item, BaseException):
                    raise item
                yield item
                if isinstance(item, Outcome):
                    return
        finally:
            while solver.is_alive():
                wrapper.stop_search()  # again: a solver that has not quite begun misses a call
                solver.join(_POLL_SECONDS)
            wrapper.clear_solution_callback(watch)


def terms_of(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Add up (variable, coefficient) pairs and leave out zeros."""
    terms: dict[int, int] = {}
    for variable, coefficient in pairs:
        terms[variable] = terms.get(variable, 0) + coefficient
    return {variable: coefficient for variable, coefficient in terms.items() if coefficient}
