"""Reports of plans and solutions: for the terminal, and as pictures."""
