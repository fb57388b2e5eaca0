"""Mixes: what a block that services share in time can carry, and schedules proved optimal.

:mod:`.first_fit` is a method of its own; :mod:`.run` is what ``price_and_branch`` does with
problems of this kind: prices, programs over mixes, dives. It stands on ``branch_and_price`` and
what stands before it.
"""
