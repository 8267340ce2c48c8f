"""Preference data as TRL reads it, and a card that says what it promises and how to train on it."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from client.sources.columns import Columns
from client.sources.table import Table
from protocol.decimals import canonical
from protocol.strict import StudyError
from protocol.version import version
from studies.export.reports import Reported, guarantee
from studies.export.texts import Text, full_texts

NAMES = {"jsonl": "train.jsonl", "parquet": "train.parquet"}
FIRST_GOOD = "0.9.2"  # the first release with the loss
FUSED = ("0.29.0", "1.12.0", "1.13.0")  # of its fused kernels: the first and the last that ignored it, and the next
Preference = dict[str, Text]


def write_trl(out: Path, table: Table, found: Reported, form: str) -> int:
    """Write preferences and their card into a new folder, and return how many there are. Raises StudyError, OSError.

    Lines stand in the order of their texts. In that of the file, or with what else it says, they could tell the true
    side; a text is as its name has it, since how it is spaced may tell which column it stood in.
    """
    lines = preferences(table, found)
    out.mkdir(parents=True)
    path = out / NAMES[form]
    if form == "jsonl":
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(lines), path)
    (out / "README.md").write_text(card(found, len(lines), path.name), "utf-8")
    return len(lines)


def check_columns(table: Table) -> Columns:
    """The columns of a file whose texts can be written; raises StudyError for others, before any label is asked."""
    columns = table.columns
    if not isinstance(columns, Columns) or columns.both is not None:
        raise StudyError(f"{table.path}: expected texts in two columns, such as chosen and rejected")
    return columns


def preferences(table: Table, found: Reported) -> list[Preference]:
    """A line for each label: prompt where there is one, and which text it reports as chosen and which as rejected."""
    columns = check_columns(table)
    asked = [] if columns.prompt is None else [columns.prompt]
    texts = full_texts(table.path, [*columns.items, *asked])
    lines = []
    for (first, second), won in zip(table.pairs[found.rows].tolist(), found.second.tolist(), strict=True):
        chosen, rejected = (second, first) if won else (first, second)
        lines.append(_line(table.items[chosen], table.items[rejected], table.answers, texts))
    return sorted(lines, key=_place)


def _line(chosen: str, rejected: str, answers: Mapping[str, tuple[str, str]], texts: Mapping[str, Text]) -> Preference:
    if chosen not in answers:
        return {"chosen": texts[chosen], "rejected": texts[rejected]}
    (said, prompt), (other, _) = answers[chosen], answers[rejected]
    line: Preference = {"prompt": texts[prompt], "chosen": texts[said], "rejected": texts[other]}
    spoken = isinstance(line["chosen"], list)
    if spoken and isinstance(line["prompt"], str):
        line["prompt"] = [{"role": "user", "content": line["prompt"]}]
    return line


def _place(line: Preference) -> tuple[bytes, str]:
    """Where a line stands: by a hash of its texts without their sides, then by what it reports."""
    sides = sorted(json.dumps(line[side]) for side in ("chosen", "rejected"))
    whole = json.dumps([line.get("prompt"), *sides])
    return hashlib.sha256(whole.encode()).digest(), json.dumps(line["chosen"])


def card(found: Reported, count: int, name: str) -> str:
    """The card of a data set: guarantee, setting, and what is not promised."""
    level, smoothing = canonical(found.epsilon), repr(found.flip)
    settings = f'DPOConfig(loss_type="robust", label_smoothing={smoothing})'
    return _CARD.format(
        count=f"{count:,}",
        name=name,
        guarantee=guarantee(found),
        level=level,
        smoothing=smoothing,
        settings=settings,
        most=found.most,
        spent=canonical(found.epsilon * found.most),
        good=FIRST_GOOD,
        bad=FUSED[0],
        last=FUSED[1],
        mended=FUSED[2],
        version=version(),
    )


_CARD = """\
---
task_categories: [text-generation]
tags: [preference, differential-privacy]
configs: [{{config_name: default, data_files: {name}}}]
---

# Preferences, privatised at their labelers

{count} preferences in `{name}`: which text is `chosen` is what the labeler's own process reported, by randomised
response. A report is the other way round with probability {smoothing}.

**Guarantee**: {guarantee}.
A labeler with m labels spends m times epsilon together: {spent} at the most here, of {most}. Prompts, texts, and who
was asked about them are public; names of models, scores, labelers and the order of the source are not in it.

**Training with TRL** ({good} or later). The loss that takes the noise out again is `robust`, with
label_smoothing = 1 / (1 + e^epsilon):

```python
{settings}
```

Its expectation over the reports is the loss of the true labels (a tie is a fair coin's, and an answer that is missing
counts for the text whose name comes first), so its gradient is that of the de-biased loss of
Chowdhury, Zhou and Natarajan (2024). With another `label_smoothing` it is biased. The usual loss, `sigmoid`, learns
as if all reports were true. Of TRL {bad} to {last}, `use_liger_kernel=True` hands this loss to Liger without the
smoothing, which has then no effect, without a word: leave that flag off, or take {mended} or later.

Each label is randomised once. Do not ask again at another level: levels add up. Made by halftruth {version}.
"""
