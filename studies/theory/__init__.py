"""What theory says about errors: `sandwich` predicts them, with nothing fitted; `local`, `central` and `heavy`
(tails) bound them.

Bounds hold up to constants. Where the paper names none, `fitted` takes one from results, and says at which n.
"""
