"""The table of scale: real replies, whose bytes depend on public things only, and as many as a row's number allows."""

from protocol.trust import Trust
from studies.flower.scale import messages


def test_bytes_follow_from_labels_and_not_from_nodes() -> None:
    found = {(one.nodes, one.labels, one.trust): one for one in messages((1, 1000), (8, 8008), 5)}
    assert len(found) == 2 * 2 * 2
    few, many = (found[1, labels, Trust.LOCAL] for labels in (8, 8008))
    assert 1000 <= many.up - few.up <= 1008, "a bit a label, and a few bytes for larger numbers"
    assert abs(found[1, 8008, Trust.CENTRAL].up - found[1, 8, Trust.CENTRAL].up) <= 8, "sums do not grow"
    for trust in (Trust.LOCAL, Trust.CENTRAL):
        alone, among = found[1, 8008, trust], found[1000, 8008, trust]
        assert abs(alone.up - among.up) <= 16 and abs(alone.down - among.down) <= 16
        assert among.round == 1000 * (among.up + among.down)


def test_more_rows_than_numbers_are_left_out() -> None:
    assert list(messages((1 << 20,), (1 << 12,), 5)) == []
