"""Blocks that services share in time: first fit, and what ``price_and_branch`` does with them."""
