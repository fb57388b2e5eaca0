"""The method of the fewest unproved answers: branch and price, from a dozen jobs to millions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from cms.plugin.algorithm import NoOptions, Support
from cms.problem.problem import Problem

if TYPE_CHECKING:
    from cms.plugin.algorithm import Budget, Claim
    from cms.plugin.guarantee import Guarantee
    from cms.shards.problem import ShardedProblem
    from cms.time_sharing.problem import TimeSharedProblem

    Taken: TypeAlias = Problem | ShardedProblem | TimeSharedProblem


class BranchAndPrice:
    """Schedules proved optimal, from a dozen jobs to millions.

    A first schedule comes at once. Block prices follow, by a cutting-plane method in which every
    pass over the jobs is one tiny knapsack a job; they certify the lower bound, and the passes'
    weights make a fractional schedule, which is rounded by error diffusion. What gap is left is
    closed by integer programs over a few dozen jobs, or all that can matter, by greedy's schedules,
    where they come soon, and by branching on machines and blocks with prices at every leaf. Where
    that ends without a proof CP-SAT's word is asked.

    Machines with size-bounded sets are dived for: jobs that the fractional solution leaves
    undecided decide in a linear program, which then loses blocks as machines are kept, with options
    and contents priced anew after each step. Where jobs are of few kinds an integer program chooses
    whole machines and whole jobs first. Where blocks are shared in time, of a
    :class:`cms.TimeSharedProblem`, mixes take the place of options, and a price function a job
    certifies the bound; with one job a block it is the method for plain problems.

    Notes
    -----
    **Guarantee.** None by a ratio: on some families the bound itself is far from the optimum
    (theory 6.11). The status says what is proved; ``docs/measured/performance.md`` says how often
    that was the optimum.

    **Running time.** About a dozen passes over the jobs, each linear in their number, and integer
    programs of at most a few hundred jobs or ten thousand options. Branching is exponential in the
    worst case and is limited to a number of nodes; without a time limit a run ends when all of this
    is done.

    References
    ----------
    The bound is that of Dantzig and Wolfe (1960, DOI 10.1287/opre.8.1.101); certificates are those
    of ``docs/reference/files.md``. Diving follows Sadykov, Vanderbeck, Pessoa, Tahiri and Uchoa
    (2019, DOI 10.1287/ijoc.2018.0822), shared blocks Choi, Lee, Kim, Park, Kwon and Huh (USENIX ATC
    2022); the steps of their price functions are Chvatal-Gomory cuts of jobs' rows.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(
    ...     configurations=[Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})],
    ...     jobs=[Job("bert", 1200, {"1g": 90, "3g": "310.5", "4g": 420})],
    ... )
    >>> solution = solve(problem, method="branch_and_price")
    >>> solution.machine_count, solution.status.value, solution.proof.value
    (2, 'optimal', 'checked')
    >>> [line.source for line in solution.history]
    ['branch_and_price: first schedule', 'branch_and_price: block prices, 4 passes']
    """

    name = "branch_and_price"
    options_type = NoOptions
    takes = (
        Problem,
        "cms.shards.problem.ShardedProblem",
        "cms.time_sharing.problem.TimeSharedProblem",
    )

    def support(self, problem: Taken, options: NoOptions) -> Support:
        """Take every problem of these kinds."""
        return Support(True)

    def guarantee(self, problem: Taken, options: NoOptions) -> Guarantee | None:
        """Return None: what a run proves is in its status, not in a ratio."""
        return None

    def run(self, problem: Taken, options: NoOptions, budget: Budget) -> Iterator[Claim]:
        """Yield certificates and schedules, and CP-SAT's word where nothing else is left."""
        given: Any = problem
        if not hasattr(problem, "max_jobs"):  # of a block, where jobs share it in time
            from .run import claims

            yield from claims(given, budget)
        elif given.max_jobs == 1:
            from .run import claims_unshared

            yield from claims_unshared(given, budget)
        else:
            from ..time_sharing.run import mix_claims

            yield from mix_claims(given, budget)
