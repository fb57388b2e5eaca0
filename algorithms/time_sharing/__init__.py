"""Blocks that services share in time: first fit, and what ``branch_and_price`` does with them."""
