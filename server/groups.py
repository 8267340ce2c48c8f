"""Groups of consecutive rows, among which an estimator looks for liars: public, and the same however rows are split."""

from itertools import pairwise


def row_groups(count: int, groups: int) -> list[range]:
    """Rows 0, ..., count - 1 cut into `groups` runs, the longer ones first, as `numpy.array_split` cuts.

    Raises ValueError for fewer than three groups, or more groups than rows.

    >>> row_groups(7, 3)
    [range(0, 3), range(3, 5), range(5, 7)]
    """
    if not 3 <= groups <= count:
        raise ValueError(f"expected 3 to {count} groups of {count} rows, got {groups}")
    size, longer = divmod(count, groups)
    starts = [group * size + min(group, longer) for group in range(groups + 1)]
    return [range(start, stop) for start, stop in pairwise(starts)]
