"""How long work goes on: where a step may be left, the clock, Ctrl-C. Imports nothing of ours."""
