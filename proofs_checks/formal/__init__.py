"""A third checker of plans, itself proved: written in Coq and extracted to a program.

``coq/Spec.v`` says what a problem, a schedule and an optimum are, and ``coq/Recheck.v`` has the
theorem: whatever the program says of a problem is true. Around it stands little that must be
trusted, and this folder holds it: ``words`` turns documents into the data of the program, ``forms``
says what that is, ``program`` runs the program, ``theorem`` writes a plan as a theorem for Coq.
``docs/methods/proofs.md`` says what is proved and what is not.

``make formal`` builds the program; ``cms-check --proved plan.json`` runs it. It may
import :mod:`proofs_checks.checker`, whose reading of documents and whose rules about what they may
claim it shares, and nothing else of ours.
"""
