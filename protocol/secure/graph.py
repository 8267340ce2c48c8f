"""Whose neighbour a member of a session is, and how many have to agree: functions of the session and its roster alone.

Up to `COMPLETE` members everybody shares masks with everybody, and has shares of everybody's secrets. Beyond, members
stand on a circle in an order that a hash says: each shares masks with those within `reach` on both sides, and gives
shares of its secrets to the nearer ones among them.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb

# What is assumed of members: so many work together with the server, whoever they are, and so many drop out.
COLLUDING, DROPPING = Fraction(1, 10), Fraction(3, 10)
SAFE = Fraction(1, 1 << 64)  # the chance, over the order on the circle, that too many who collude stand together
ENDS = Fraction(1, 1 << 20)  # and that so many of those who stand together drop out that nothing can be opened
COMPLETE = 48


@dataclass(frozen=True)
class Terms:
    """What a session of some members needs.

    `reach`: with whom a member shares masks, on each side; `holders`: who has shares of its secrets, on each side, and
    itself; `threshold` of these open one; `agree`: signatures of one list. `crowd`: of `reach` neighbours in a row more
    survive than can collude; 0 where all are neighbours.
    """

    reach: int
    holders: int
    threshold: int
    agree: int
    crowd: int


def tolerated(members: int) -> int:
    """How many of them may work with the server: a tenth, rounded down, but one of 3 to 9.

    >>> [tolerated(members) for members in (2, 3, 19, 20)]
    [0, 1, 1, 2]
    """
    return max(int(COLLUDING * members), int(members > 2))


@lru_cache(maxsize=256)
def terms(members: int) -> Terms:
    """What a session of so many members needs.

    With c = `tolerated`: `agree` = floor((members + c) / 2) + 1, so that any two sets of so many share
    an honest member, who signs one list only; of a complete graph it is the threshold as well. Else, over a random
    order: `crowd` and `reach` are the least for which members * P(crowd of reach in a row collude) <= SAFE and
    members * P(fewer than crowd of them are left) <= ENDS; `holders` the least, and `threshold` the largest up to
    holders + 1, for which members * P(threshold of 2 holders collude) <= SAFE and members * P(fewer than
    threshold - 1 of them are left) <= ENDS.

    Where every `reach` in a row have `crowd` survivors, one of these is honest: so honest survivors are connected, each
    to the next along the circle, whoever is said to have dropped out.
    Raises ValueError for no members. Source: Bonawitz et al. 2017, section 6; Bell et al. 2020, section 3; the rule of
    crowds is derived, see docs/SECURE.md.
    """
    if members < 1:
        raise ValueError(f"expected at least 1 member, got {members}")
    bad, gone, others = tolerated(members), int(DROPPING * members), members - 1
    agree = (members + bad) // 2 + 1
    full = Terms(members, members, agree, agree, 0)
    if members <= COMPLETE:
        return full
    for holders in range(1, members // 2):
        least = _least(others, bad, 2 * holders, SAFE / members)
        ends = (
            t for t in range(holders + 1, least - 1, -1) if members * _below(others, gone, 2 * holders, t - 1) <= ENDS
        )
        threshold = next(ends, 0)
        if threshold:
            break
    else:
        return full
    for reach in range(holders, members // 2):
        crowd = _least(members, bad, reach, SAFE / members)
        if members * _below(members, gone, reach, crowd) <= ENDS:
            return Terms(reach, holders, threshold, agree, crowd)
    return Terms(members, holders, threshold, agree, 0)


def neighbours(session: bytes, roster: bytes, members: int, member: int) -> tuple[list[int], list[int]]:
    """With whom a member shares masks, and who has shares of its secrets: both increasing, both with itself among them.

    `roster` is SHA-256 of the roster. Raises ValueError for a number that no member has.
    """
    if not 0 <= member < members:
        raise ValueError(f"expected a member in 0..{members - 1}, got {member}")
    found, needs = [], terms(members)
    for far in (needs.reach, needs.holders):
        if 2 * far + 1 >= members:
            found.append(list(range(members)))
            continue
        order, place = _circle(session, roster, members)
        found.append(sorted(order[(place[member] + step) % members] for step in range(-far, far + 1)))
    return found[0], found[1]


def crowded(session: bytes, roster: bytes, members: int, survivors: Collection[int]) -> bool:
    """Whether so many of any `reach` members in a row survived that one of them is honest."""
    needs = terms(members)
    if not needs.crowd:
        return True
    order, there = _circle(session, roster, members)[0], set(survivors)
    alive = [member in there for member in order]
    count = sum(alive[: needs.reach])
    for start in range(members):
        if count < needs.crowd:
            return False
        count += alive[(start + needs.reach) % members] - alive[start]
    return True


@lru_cache(maxsize=16)
def _circle(session: bytes, roster: bytes, members: int) -> tuple[list[int], list[int]]:
    """Members in the order of a hash, and each one's place in it."""
    head = b"halftruth circle v1\n" + session + roster
    order = sorted(range(members), key=lambda member: hashlib.sha256(head + member.to_bytes(4, "little")).digest())
    place = [0] * members
    for at, member in enumerate(order):
        place[member] = at
    return order, place


def _least(others: int, marked: int, drawn: int, chance: Fraction) -> int:
    """The least count that at most `chance` of draws reach: of `drawn` out of `others`, of which some are marked."""
    total, tail, count = comb(others, drawn), 0, min(drawn, marked) + 1
    while count > 0:
        tail += comb(marked, count - 1) * comb(others - marked, drawn - count + 1)
        if Fraction(tail, total) > chance:
            break
        count -= 1
    return max(1, count)


def _below(others: int, gone: int, drawn: int, least: int) -> Fraction:
    """The chance that fewer than `least` of those drawn are left."""
    first = drawn - least + 1
    ways = sum(comb(gone, count) * comb(others - gone, drawn - count) for count in range(first, min(drawn, gone) + 1))
    return Fraction(ways, comb(others, drawn))
