"""Counts in sentences."""


def counted(count: int, noun: str, spec: str = "") -> str:
    """A count with its noun, one or many; `spec` is how the number is written.

    >>> counted(1, "labeler"), counted(0, "row"), counted(12000, "label", ","), counted(2, "reply")
    ('1 labeler', '0 rows', '12,000 labels', '2 replies')
    """
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:{spec}} {noun if count == 1 else many}"
