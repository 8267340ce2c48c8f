"""The command `halftruth`. It parses and dispatches; what a command needs is imported when it runs."""

import argparse
import os
import select
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from studies.arguments import Parser
from studies.transcript_flag import add_transcript_argument

FAILED, WRONG_USE, INTERRUPTED, UNREAD = 1, 2, 130, 141

DESCRIPTION = """\
Learn from people who do not trust the server: studies of what local and central
differential privacy cost in accuracy, and rankings from real preferences."""
EXAMPLES = """\
examples:
  halftruth run studies/toml/quick.toml --out out/quick
  halftruth watch out/quick
  halftruth report out/quick
  halftruth fit votes.csv --trust local --epsilon 1
  halftruth records losses.csv --columns loss --id claim --trust central --epsilon 1 --tail 0.5 --moment 20
  halftruth data check votes.csv
  halftruth data split votes.csv --nodes 4 --out nodes
  halftruth federate nodes/server --nodes nodes --trust local --epsilon 1
  halftruth data split losses.csv --records --columns loss --id claim --nodes 4 --out nodes
  halftruth export pairs.jsonl --for trl --epsilon 2 --out private
  halftruth plan --error 0.1 --epsilon 1 --trust local
  halftruth real data --only parties
  halftruth account studies/toml/heavy-mean.toml
  halftruth audit label/ --epsilon 1
  halftruth ledger show state/ledger.sqlite
  halftruth doctor
  halftruth up --nodes 4 --tls
  halftruth server --host 0.0.0.0 --port 8443 --certs certs
  halftruth node --config node.toml
  halftruth label --pairs pairs.csv --policy policy.toml

exit codes: 0 done, 1 the run failed, 2 wrong use, 130 Ctrl-C, 141 nobody reads on, 143 ended"""
RUN_EXAMPLES = """\
examples:
  halftruth run studies/toml/figure1.toml --out out/figure1
  halftruth run studies/toml/figure1.toml --out out/figure1 --resume        go on after Ctrl-C
  halftruth run studies/toml/figure1.toml --out out/sphere --set problem.features=sphere
  halftruth run studies/toml/figure1.toml --out out/few --set study.repetitions=10 --set 'grid.n=[1000, 3000]'
  halftruth run studies/toml/quick.toml --out out/virtual --on simulation --clients 20    Flower's simulation engine
  halftruth run studies/toml/quick.toml --out out/real --on deployment --clients 3        a server and three nodes
  halftruth run studies/toml/quick.toml --out out/up --on deployment --federation         on halftruth up, or server
  halftruth run studies/toml/quick.toml --out out/ours --on deployment --clients 3 --superlink lab

docs/STUDIES.md has all keys of a study and all columns of its results.

A run writes OUT/results.parquet (one row per n, epsilon, delta, arm and repetition) and OUT/study.json. The numbers
depend on the study only: not on --on, --clients, --jobs, --block, nor on pauses. Simulation and deployment start
processes of their own, and end them, whatever happens; --superlink names a connection of your own Flower
configuration instead, to a federation that is running."""
REPORT_EXAMPLES = """\
examples:
  halftruth report out/figure1
  halftruth report out/figure1 --html                          a page to explore: out/figure1/report.html
  halftruth report out/figure1 out/sphere --html both.html     two runs side by side

It writes OUT/figures/*.png and *.svg, OUT/summary.csv and OUT/paired.csv. A page is one file that loads nothing from
anywhere: open it in a browser, send it, or print it."""


# Words of a command, its module with `add_arguments` and `main`, and its line of help, in the order that is shown.
COMMANDS = (
    (("watch",), "studies.watch", "how far a run is: progress, errors so far, messages of nodes"),
    (("fit",), "studies.fit", "rank items from a file of comparisons"),
    (("records",), "studies.records", "means and models of numbers in a file, with heavy tails or without"),
    (("federate",), "studies.federate", "rankings, means and models from files that stay on several nodes"),
    (("policy",), "studies.policy", "what a learned reward is worth: a study of policies"),
    (("attack",), "studies.attacks", "what lying labelers do, and what helps: a study of attacks"),
    (("real",), "studies.real", "what privacy costs on real files: studies of those who were kept out"),
    (("up",), "studies.flower.up_command", "start a federation on this machine, in the background"),
    (("status",), "studies.flower.status_command", "what of a federation runs"),
    (("down",), "studies.flower.down_command", "end it"),
    (("server",), "studies.flower.server_command", "serve a federation over machines"),
    (("shuffler",), "studies.flower.shuffler_command", "pass on sealed reports in an order that nobody knows"),
    (("certs",), "studies.flower.certs_command", "certificates for a federation"),
    (("keys", "new"), "studies.flower.keys_new_command", "a key for a node"),
    (("keys", "sealing"), "studies.flower.keys_sealing_command", "the key of reports that a shuffler passes on"),
    (("keys", "register"), "studies.flower.keys_register_command", "let a node come to a server"),
    (("keys", "list"), "studies.flower.keys_list_command", "the nodes that may come"),
    (("keys", "revoke"), "studies.flower.keys_revoke_command", "let a node come no more"),
    (("node",), "studies.flower.node_command", "start a labeler's node of a federation"),
    (("label",), "studies.label", "answer comparisons in a page, and release them to one's own node"),
    (("data", "check"), "studies.data.check", "what is awkward about a file, before anything is run"),
    (("data", "split"), "studies.data.split", "split a file over the nodes of a federation"),
    (("data", "embed"), "studies.text.command", "vectors of the texts of a file"),
    (("export",), "studies.export", "private preferences for training, results for MLflow and TensorBoard"),
    (("plan",), "studies.plan", "how many labels a target error needs, and what privacy costs"),
    (("account",), "studies.account", "what a study's claims cost, by every way of counting"),
    (("audit",), "studies.audit", "look for a lie: what epsilon is at least, for whatever claims one"),
    (("bench",), "studies.bench", "how fast it is, beside others and what the machine can do"),
    (("completion",), "studies.completion", "a script with which a shell completes commands and flags"),
    (("doctor",), "studies.doctor", "whether this machine has what studies and federations need"),
    (("ledger", "show"), "studies.ledger_show", "what a ledger has charged or released"),
)
GROUPS = {"data": "look at files, and split them", "keys": "keys of nodes", "ledger": "look into a ledger"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong use, 130 interrupted, 141 nobody reads on."""
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except BrokenPipeError as error:
        if not _hushed():  # another pipe than those of what is printed
            print(f"halftruth: {error}", file=sys.stderr)
            return FAILED
        return UNREAD
    finally:
        try:
            sys.stdout.flush()  # whoever reads it may have gone: found out here, and not after the end
        except BrokenPipeError:
            _hushed()


def _run(argv: Sequence[str]) -> int:
    args = parsed(argv)
    run: Callable[[argparse.Namespace], int] = args.run
    from protocol.failure import RunFailed
    from protocol.strict import StudyError, told

    try:
        return run(args)
    except StudyError as error:
        print(f"halftruth: {error}", file=sys.stderr)
        return WRONG_USE
    except RunFailed as error:
        print(f"halftruth: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, or a file that may not be written: as a person reads it
        print(f"halftruth: {told(error)}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt as stopped:  # or another signal, which brings its exit code
        print("halftruth: interrupted", file=sys.stderr)
        return int(getattr(stopped, "code", INTERRUPTED))


def _hushed() -> bool:
    """Whether somebody closed a pipe that is printed to; whatever is printed there from now on is lost, silently."""
    closed = [stream.fileno() for stream in (sys.stdout, sys.stderr) if _closed(stream.fileno())]
    for number in closed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    return bool(closed)


def _closed(number: int) -> bool:
    waiting = select.poll()
    waiting.register(number, 0)
    return any(events & select.POLLERR for _, events in waiting.poll(0))


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The words of one command as its arguments. Raises SystemExit for words that do not fit."""
    arguments = list(argv)
    return _parser(arguments).parse_args(arguments)


def every_command() -> argparse.ArgumentParser:
    """The parser with the arguments of all commands, for whoever wants to list them."""
    return _parser(None)


def _parser(arguments: Sequence[str] | None) -> argparse.ArgumentParser:
    """A parser that knows the arguments of the command that the words are about (None: of all)."""
    parser = _new(Parser, prog="halftruth", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    run = _new(commands.add_parser, "run", help="run a study", epilog=RUN_EXAMPLES)
    _run_arguments(run)
    report = _new(commands.add_parser, "report", help="tables and plots of a finished run", epilog=REPORT_EXAMPLES)
    report.add_argument("out", metavar="OUT", nargs="*", help="folders of finished runs; --html compares them")
    report.add_argument(
        "--html", metavar="FILE", nargs="?", const="", help="write one page to explore instead (OUT/report.html)"
    )
    report.set_defaults(run=_lazy("studies.console", "report_command"))
    groups: dict[str, Any] = {}
    for words, module, text in COMMANDS:
        within = commands
        if len(words) > 1:
            within = groups.get(words[0]) or commands.add_parser(words[0], help=GROUPS[words[0]]).add_subparsers(
                title="commands", metavar="COMMAND", required=True
            )
            groups[words[0]] = within
        command = within.add_parser(words[-1], help=text)
        if arguments is None or tuple(arguments[: len(words)]) == words:
            import_module(module).add_arguments(command)
            command.set_defaults(run=_lazy(module, "main"))
    return parser


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help="a study file (TOML)")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the results")
    parser.add_argument(
        "--on",
        choices=["in-process", "simulation", "deployment"],
        default="in-process",
        help="runtime: in-process (default) uses all cores; simulation and deployment are Flower's",
    )
    parser.add_argument("--clients", metavar="K", type=count, help="clients that share the rows (1; or all nodes)")
    parser.add_argument("--superlink", metavar="NAME", help="run on a connection of your Flower configuration")
    parser.add_argument(
        "--federation", metavar="DIR", nargs="?", const="", help="run on halftruth up or server, by its --state folder"
    )
    parser.add_argument("--deadline", metavar="S", type=seconds, help="seconds for a round; not in-process (600)")
    add_mode_arguments(parser)
    add_transcript_argument(parser)
    parser.add_argument("--jobs", metavar="J", type=count, help="processes (all cores); in-process only")
    parser.add_argument("--resume", action="store_true", help="go on where an earlier run stopped")
    parser.add_argument("--overwrite", action="store_true", help="delete earlier results in DIR and start again")
    parser.add_argument("--block", metavar="N", type=count, help="repetitions in one unit of work")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="overrides",
        help="change a key of the study, such as problem.features=sphere or arm.3.step=0.1",
    )
    parser.set_defaults(run=_lazy("studies.console", "run_command"))


def add_mode_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of those who ask nodes: whether all of them have to answer."""
    parser.add_argument(
        "--mode", choices=["strict", "live"], help="all nodes have to answer (default), or those count that do in time"
    )
    parser.add_argument(
        "--quorum", metavar="K", help="live: so many nodes have to answer, a number or a share such as 0.75 (1)"
    )


def _new(make: Callable[..., argparse.ArgumentParser], *names: str, **options: Any) -> argparse.ArgumentParser:
    return make(*names, formatter_class=argparse.RawDescriptionHelpFormatter, **options)


def count(text: str) -> int:
    """An integer of at least 1, as an argument. Raises argparse.ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected an integer of at least 1, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """A number of seconds > 0, as an argument. Raises argparse.ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds > 0, got {text!r}")
    return value


def _lazy(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    def call(args: argparse.Namespace) -> int:
        code: int = getattr(import_module(module), name)(args)
        return code

    return call


class _Version(argparse.Action):
    """Reading the installed version takes a while: only who asks waits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from protocol.version import version

        print(f"halftruth {version()}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
