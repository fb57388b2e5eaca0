"""A plan as a theorem: Coq computes the verdict itself, and nothing is extracted or compiled."""

from __future__ import annotations

from fractions import Fraction
from typing import get_type_hints

from .forms import Plan, write_term
from .program import EFFORT

_FILE = """From CMS Require Import Recheck.
Open Scope Z_scope.

Definition the_problem : problem := {problem}.
Definition the_schedule : option (list group) := {schedule}.
Definition the_tree : qtree := {tree}.
Definition effort : nat := Z.to_nat {effort}.

Theorem verdict : recheck effort the_problem the_schedule the_tree = {verdict}.
Proof. vm_cast_no_check (eq_refl ({verdict})). Qed.

Theorem plan_holds : {claim}.
Proof.
  pose proof (recheck_sound effort the_problem the_schedule the_tree) as H.
  rewrite verdict in H. exact H.
Qed.

(* The schedule is the one above, written out as machines. *)
Theorem schedule_holds : shown the_problem the_schedule ({verdict}).
Proof.
  pose proof (recheck_shows effort the_problem the_schedule the_tree) as H.
  rewrite verdict in H. exact H.
Qed.

Definition both := conj plan_holds schedule_holds.
Print Assumptions both.
"""
_CLAIMS = {
    "Infeasible": "forall s, ~ valid the_problem s",
    "Optimal": "attained the_problem {0} /\\ at_least the_problem {0}",
    "Between": "attained the_problem {1} /\\ at_least the_problem {0}",
    "AtLeast": "at_least the_problem {0}",
}


def theorem(plan: Plan, verdict: str) -> str:
    """Write a file for Coq that states what a plan proves, and proves it.

    The verdict is what the program says of it, other than ``Rejected``. Compile the file where the
    files of ``coq/`` were compiled.
    """
    kind, *numbers = verdict.split()
    shown = [write_term(Fraction(text), Fraction) for text in numbers]
    terms = {
        name: write_term(getattr(plan, name), form) for name, form in get_type_hints(Plan).items()
    }
    return _FILE.format(
        **terms,
        effort=EFFORT,
        verdict=" ".join([kind, *shown]),
        claim=_CLAIMS[kind].format(*shown),
    )
