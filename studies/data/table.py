"""The table of docs/DATA.md: what `halftruth data check` says of awkward files and of real ones."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from protocol.counting import counted
from studies.cli import parsed
from studies.data.look import look
from studies.data.report import Report

ALONE = "--labeler none"
STORY = f"{ALONE} --pair options --winner overall_quality"
BEANS = "--ranking best-worst --items variety_a,variety_b,variety_c"
# Files under the folder of data, and the flags that they need.
QUIRKS = (
    *(("q01_ties.csv", ""), ("q02_both_bad.csv", ""), ("q04_duplicate_pairs.csv", ""), ("q05_self_comparison.csv", "")),
    *(("q06_single_label_labeler.csv", ""), ("q07_unicode_names.csv", ""), ("q08_bom.csv", "")),
    *(("q09_crlf_embedded_newline.csv", ""), ("q10_non_numeric_ids.csv", ""), ("q12_huge_numbers.csv", "")),
    *(
        ("q12b_huge_values.csv", ""),
        ("q13_nan_inf.csv", ""),
        ("q13b_nan_inf.jsonl", ""),
        ("q15_blank_lines.jsonl", ALONE),
    ),
    *(("q16_column_names.jsonl", ALONE), ("q17_gzip.csv.gz", ""), ("q17_gzip_wrong_name.csv", "")),
    *(("q17_zst.csv.zst", ""), ("q18_empty_or_identical_text.jsonl", f"{ALONE} --unnamed drop-public")),
    ("q19_never_wins.csv", ""),
)
PAIRS = (
    *(("baseball_1987_aggregated.csv", ALONE), ("cems_choice_ties.csv", ""), ("first_names.csv", "")),
    *(("flatlizards_contests.csv", ALONE), ("flatlizards_features.csv", "--records")),
    *(("football_spain.csv", f"{ALONE} --winner-coding 1/0/-1"), ("german_parties_2009.csv", "")),
    *(("llmfao_crowd_comparisons.csv", "--item-a left --item-b right"),),
    *(("llmfao_gpt4_comparisons.csv", f"{ALONE} --item-a left --item-b right"), ("mtbench_gpt4_pair.jsonl", "")),
    *(("mtbench_human_judgments.jsonl", ""), ("sound_quality.csv", "--question progmat,session")),
    *(("sounds_assessors.csv", ""), ("story_3b_pairwise.csv", STORY)),
)
TEXTS = (
    *(("hh_rlhf_harmless_base_test.jsonl.gz", ALONE), ("llmfao_chosen_rejected_1500.jsonl.gz", "")),
    *(("llmfao_pairs_crowd.jsonl.zst", ""), ("mtbench_questions.jsonl", "")),
)
RANKINGS = (
    *(
        ("beans_triadic.csv", BEANS),
        ("breadwheat_triadic.csv", "--best overall_best"),
        ("salad_wide.csv", "--ranking wide"),
    ),
    ("nascar_2002_long.csv", f"{ALONE} --ranking long --unranked absent"),
)
NUMBERS = tuple(
    (name, "--records")
    for name in (
        *(
            "auto_bodily_injury_claims.csv",
            "auto_claims_paid.csv",
            "blackouts.csv",
            "bmw_log_returns.csv",
            "cities.csv",
        ),
        *("danish_fire_losses.csv", "file_sizes_debian.csv", "fires.parquet", "forbes2000.csv"),
        *("nmes1988_medical_visits.csv", "quakes.csv", "sp500_index_raw.csv", "surnames.csv", "terrorism.csv"),
        "tissue_gene_expression.parquet",
    )
)
FOLDERS = {
    "quirks": QUIRKS,
    "pairwise": PAIRS,
    "preference_text": TEXTS,
    "rankings": RANKINGS,
    "heavy_tailed": NUMBERS,
}
MOST_COLUMNS, LONGEST = 3, 240


def section(folder: Path, name: str) -> Iterator[str]:
    """Lines of Markdown about one folder of data."""
    yield from (f"### {name}", "", "| file | flags | usable | what it holds | found |", "|---|---|---|---|---|")
    for file, flags in FOLDERS[name]:
        report = look(parsed(["data", "check", str(folder / name / file), *shlex.split(flags)]))
        cells = (file, flags and f"`{flags}`", "yes" if report.usable else "**no**", _held(report), _found(report))
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _held(report: Report) -> str:
    counts = report.counts
    named = ("row", "label") if report.kind == "comparisons" else ("ranking",)
    if counts:
        whole = [counted(counts[f"{name}s"], name, ",") for name in (*named, "item", "labeler") if f"{name}s" in counts]
        return f"{report.kind}: {', '.join(whole)}"
    if report.numbers:
        shown = [
            f"{column['column']}" + (f" (tail index {column['tail_index']:.1f})" if column["tail_index"] else "")
            for column in report.numbers[:MOST_COLUMNS]
        ]
        more = f" and {len(report.numbers) - MOST_COLUMNS} more" if len(report.numbers) > MOST_COLUMNS else ""
        return f"records: {report.file['records']:,}; numbers {', '.join(shown)}{more}"
    return "-"


def _found(report: Report) -> str:
    counts: Counter[str] = Counter()
    for finding in report.findings:
        if report.error is None or finding.code != "cannot-be-used":
            counts[finding.code] += finding.count
    found = [f"{code} ({count:,})" for code, count in counts.items()]
    if report.error is not None:
        text = report.error.replace(f"{report.path}", report.path.name)
        found.append(text if len(text) <= LONGEST else text[:LONGEST] + "...")
    return "; ".join(found) or "nothing"


def main(argv: Sequence[str]) -> int:
    """Print the tables about the files of a folder of data."""
    for name in FOLDERS:
        print("\n".join([*section(Path(argv[0]), name), ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
