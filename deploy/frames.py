"""Byte strings over a socket between two processes of one node, each with the seconds that it is worth."""

import socket
import struct

HEAD = struct.Struct("!Qd")
MOST = 1 << 32


class Gone(Exception):
    """The other end is closed, or sends what is no frame."""


def send(line: socket.socket, content: bytes, seconds: float = 0.0) -> None:
    """Send one frame. Raises Gone."""
    try:
        line.sendall(HEAD.pack(len(content), seconds) + content)
    except (BrokenPipeError, ConnectionResetError):
        raise Gone from None


def receive(line: socket.socket) -> tuple[bytes, float]:
    """The next frame, and its seconds. Raises Gone, and TimeoutError where the socket has a time limit."""
    size, seconds = HEAD.unpack(_exactly(line, HEAD.size))
    if size > MOST:
        raise Gone
    return _exactly(line, size), seconds


def _exactly(line: socket.socket, size: int) -> bytes:
    content = bytearray(size)
    view = memoryview(content)
    while view:
        try:
            got = line.recv_into(view)
        except ConnectionResetError:
            raise Gone from None
        if not got:
            raise Gone
        view = view[got:]
    return bytes(content)
