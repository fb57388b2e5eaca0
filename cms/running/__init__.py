"""How long work goes on: stopping points, the clock, Ctrl-C. Imports no other part of cms."""
