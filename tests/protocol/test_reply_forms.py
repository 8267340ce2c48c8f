"""A form writes what the codec writes, reads it back, and writes nothing that has another form."""

import numpy as np
import pytest

from protocol.alike import DIGITS, Form, digits_of
from protocol.codec import encode_reply, encode_report
from protocol.messages import Coins, Kind, Mechanism, Payload, Report, Runs
from protocol.numerics import fingerprint


def reply(row: int, bits: tuple[int, ...]) -> bytes:
    values = np.array(bits, dtype=np.uint8)[:, None]
    payload = Payload(Kind.SYMBOLS, values, outcomes=2)
    report = Report(
        bytes(32), Runs(((row, 1, 1),)), payload, Mechanism("none"), b"", Coins.ADDRESSED, fingerprint(), None
    )
    return encode_reply([(encode_report(report), b"")])


@pytest.mark.parametrize("digits", range(1, DIGITS + 1))
def test_a_form_writes_what_the_codec_writes_and_reads_it_back(digits: int) -> None:
    first, last = 1 << 7 * (digits - 1), min((1 << 7 * digits), 1 << 32) - 1
    rows = np.array([first, first + 1, (first + last) // 2, last - 1, last])
    bits = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 1], [1, 0, 1]], dtype=np.uint8)
    form = Form.of(reply(first, (1, 1, 0)))
    assert form is not None and form.digits == digits and (digits_of(rows) == digits).all()
    written = list(form.write(rows, bits))
    assert written == [reply(row, tuple(own)) for row, own in zip(rows.tolist(), bits.tolist(), strict=True)]
    letters = np.frombuffer(b"".join(written), dtype=np.uint8).reshape(len(rows), -1)
    fits, found, answers = form.read(letters)
    assert fits.all() and (found == rows).all() and (answers == bits).all()


def test_what_has_another_form_is_not_written() -> None:
    form = Form.of(reply(200, (0, 1)))
    assert form is not None
    rows, bits = np.array([200, 300]), np.zeros((2, 2), dtype=np.uint8)
    for row in (0, 1, 127, 1 << 14, -1):
        with pytest.raises(ValueError, match="expected rows whose numbers have 2 digits"):
            form.write(np.array([200, row]), bits)
    for wrong in (bits[:1], bits[:, :1], bits + np.uint8(2), bits.astype(np.int64)):
        with pytest.raises(ValueError, match=r"expected bits of shape \(2, 2\)"):
            form.write(rows, wrong)
    assert list(form.write(rows[:0], bits[:0])) == []


def test_row_0_has_no_number_on_the_wire() -> None:
    assert digits_of(np.array([0, 1, 127, 128, (1 << 32) - 1])).tolist() == [0, 1, 1, 2, 5]
    assert Form.of(reply(0, (1,))) is None
