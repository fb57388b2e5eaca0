"""LP_DW, the linear program over options: best block prices, the fractional schedule behind them.

May import ``solvers``.
"""
