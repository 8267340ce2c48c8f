"""A small TCP relay that delays, cuts and stalls what passes through it: `python relay.py LISTEN TO [--delay S] ...`.

Where the kernel has no network emulator, this stands for a bad line: TCP itself hides lost packets from programs, which
see them as pauses and as connections that end.
"""

import argparse
import asyncio
import random

CHUNK = 4096


class Line:
    """A bad line. `delay`: seconds each chunk takes; `stall`: the share of chunks that take `pause` seconds more, as a
    retransmission does; `cut`: the share of chunks at which the connection is reset. Seeded, so that runs are alike.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.host, self.port = args.to.rsplit(":", 1)
        self.delay, self.stall, self.pause, self.cut = args.delay, args.stall, args.pause, args.cut
        self.coins = random.Random(args.seed)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection both ways until either end, or the line, has had enough."""
        try:
            there, back = await asyncio.open_connection(self.host, int(self.port))
        except OSError:
            writer.close()
            return
        ways = [asyncio.ensure_future(self._carry(reader, back)), asyncio.ensure_future(self._carry(there, writer))]
        done, running = await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
        for way in running:
            way.cancel()
        broken = any(way.exception() for way in done)
        for end in (writer, back):
            end.transport.abort() if broken else end.close()

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while chunk := await source.read(CHUNK):
            coin = self.coins.random()
            if coin < self.cut:
                raise ConnectionResetError("the line was cut")
            await asyncio.sleep(self.delay + (self.pause if coin < self.cut + self.stall else 0.0))
            sink.write(chunk)
            await sink.drain()
        sink.write_eof()


async def main(args: argparse.Namespace) -> None:
    """Listen for ever."""
    host, port = args.listen.rsplit(":", 1)
    line = Line(args)
    async with await asyncio.start_server(line.serve, host, int(port)) as server:
        print(f"relay: {args.listen} -> {args.to}", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("listen", metavar="LISTEN", help="HOST:PORT to listen on")
    parser.add_argument("to", metavar="TO", help="HOST:PORT to connect to")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--stall", type=float, default=0.0)
    parser.add_argument("--pause", type=float, default=0.5)
    parser.add_argument("--cut", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    asyncio.run(main(parser.parse_args()))
