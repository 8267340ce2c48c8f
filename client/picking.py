"""Which way of answering each labeler takes: remembered answers first, then the preferred level that it can pay."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from client.account import Account, BudgetExhausted, Charge
from client.policy import Policy


def picked(
    charges: Sequence[Charge], accounts: Sequence[Account], allowed: NDArray[np.bool_], policy: Policy
) -> NDArray[np.int64]:
    """The charge of each row, by its place in `charges`; one for all rows of a labeler. Shape (rows,).

    Of those allowed (charges, rows) that all fresh labels of a labeler can pay: the first in which some of its labels
    have answered, else the first. It depends on tasks answered before, on policy and on whose a row is: neither totals
    nor the fact that there is an answer depend on a label (docs/PERSONAL_BUDGETS.md).
    Raises BudgetExhausted where a labeler can pay for none.
    """
    owners, count = accounts[0].owners, len(accounts[0].payers.ids)
    usable = np.ones((len(charges), count), dtype=np.bool_)
    known = np.zeros_like(usable)
    for way, (charge, account) in enumerate(zip(charges, accounts, strict=True)):
        usable[way, owners[~allowed[way]]] = False
        usable[way] &= account.able(charge, policy)
        known[way] = usable[way] & account.remembers()
    if not usable.any(axis=0).all():
        raise BudgetExhausted("expected a budget that lasts for every label and labeler asked for")
    choice = np.where(known.any(axis=0), known.argmax(axis=0), usable.argmax(axis=0))
    found: NDArray[np.int64] = choice[owners]
    return found
