"""What a node gets of a file of rankings: whole ones, a line for each item and its rank, under global row numbers."""

from collections.abc import Iterator

from client.sources.ranking_columns import RankingColumns
from client.sources.ranking_labels import RankingAs, rows_of
from client.sources.rankings import BELOW, read_rankings
from client.sources.reading import read_records
from client.sources.table import Table
from protocol.strict import StudyError

RANKINGS = "rankings.csv"
HEADER = ("row", "labeler", "item", "rank", "question")
SOURCE = """\
ranking = "long"
row = "row"
labeler = "labeler"
item_columns = ["item"]
rank = "rank"
unranked = "last"
questions = ["question"]
"""
Line = tuple[int, str, str, object, str]


def ranking_lines(table: Table, asked: RankingAs) -> Iterator[tuple[int, list[Line]]]:
    """Each ranking of a table's file: the position of its first row, and its lines.

    Items stand in the order of their names. Where the top choice is asked, a ranking that has none is written as one
    without an answer. Raises StudyError for a file that changed since the table was read.
    """
    assert isinstance(table.columns, RankingColumns)
    start = 0
    rankings, _ = read_rankings(read_records(table.path), table.columns)
    if sum(rows_of(ranking, asked) for ranking in rankings) != len(table.pairs):
        raise StudyError(f"{table.path}: expected the file as it was a moment ago: try again")
    for ranking in rankings:
        known = bool(asked.pairs) or ranking.top is not None
        ranks = [rank if known and rank != BELOW else "" for rank in ranking.ranks]
        row = int(table.rows_held[start])
        pairs = zip(ranking.items, ranks, strict=True)
        yield start, [(row, ranking.owner, item, rank, ranking.question) for item, rank in pairs]
        start += rows_of(ranking, asked)
