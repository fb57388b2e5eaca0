"""From block prices to schedules and proofs: rounding, dives, exact programs, one small tree."""
