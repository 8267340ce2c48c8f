"""The table of docs/DEFAULTS.md: the paper's methods against the defaults. `python -m studies.defaults FOLDER ...`."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from protocol.strict import StudyError
from studies.folder import Folder
from studies.report.view import View
from studies.summary import Moments, Setting, paired, summarise

_LOCAL, _CENTRAL = "local/randomized-response/rr-map", "central/gaussian-statistic-clipped/mle"
# What is compared: a heading, the arm as in the paper, the default.
Pair = tuple[str, str, str]
PAIRS: tuple[Pair, ...] = (
    ("one-pass SGD / RR-MAP", "local/randomized-response/debiased-sgd", _LOCAL),
    ("de-biased / RR-MAP", "local/randomized-response/debiased", _LOCAL),
    ("objective perturbation / clipped", "central/objective-perturbation-paper/mle[norm=unprojected]", _CENTRAL),
)
BETTER, EVEN, WORSE = "better", "n.s.", "worse"


@dataclass(frozen=True)
class Compared:
    """A paper's arm against the default at one setting, over common repetitions.

    `ratio` of mean errors, paper / default; `gap` = moments of the paired differences paper - default.
    """

    setting: Setting
    heading: str
    ratio: float
    gap: Moments

    @property
    def verdict(self) -> str:
        """Of the default: better or worse where the 95 % interval of the differences leaves out 0, else n.s."""
        if self.gap.low > 0:
            return BETTER
        return WORSE if self.gap.high < 0 else EVEN


def compare(table: pa.Table, pairs: Iterable[Pair] | None = None, metric: str = "error_l2") -> list[Compared]:
    """All comparisons (`PAIRS` if none are said) that a results table has both arms for, in its order.

    Raises ValueError where there are none.
    """
    pairs = list(PAIRS if pairs is None else pairs)
    means = {(one.setting, one.arm): one.moments.mean for one in summarise(table, metric)}
    gaps = {(one.setting, one.left, one.right): one.moments for one in paired(table, metric)}
    gaps |= {(setting, right, left): gap.reversed() for (setting, left, right), gap in gaps.items()}
    found = []
    for setting in dict.fromkeys(setting for setting, _ in means):
        for heading, paper, default in pairs:
            gap = gaps.get((setting, paper, default))
            if gap is not None:
                ratio = means[setting, paper] / means[setting, default]
                found.append(Compared(setting, heading, ratio, gap))
    if not found:
        raise ValueError("expected results of a study of defaults, got none of the arms that are compared")
    return found


def markdown(features: str, compared: Iterable[Compared]) -> Iterator[str]:
    """Lines of a table: a row for each setting, then how the comparisons came out."""
    by_setting: dict[Setting, dict[str, Compared]] = {}
    for one in compared:
        by_setting.setdefault(one.setting, {})[one.heading] = one
    headings = [heading for heading, _, _ in PAIRS]
    yield "| features | n | epsilon | " + " | ".join(headings) + " |"
    yield "|---" * (3 + len(headings)) + "|"
    for setting, own in by_setting.items():
        cells = [cell(own[heading]) if heading in own else "-" for heading in headings]
        yield f"| {features} | {setting.n} | {setting.epsilon or 0:g} | " + " | ".join(cells) + " |"
    yield ""
    yield f"{features}: {counts(one for own in by_setting.values() for one in own.values())}"


def counts(compared: Iterable[Compared]) -> str:
    """How comparisons came out, in words."""
    everyone = [one.verdict for one in compared]
    said = ", ".join(f"{everyone.count(verdict)} {verdict}" for verdict in (BETTER, EVEN, WORSE))
    return f"{len(everyone)} comparisons: the default is {said}."


def cell(one: Compared) -> str:
    """Ratio, and the interval of the differences; the verdict where it is not "better"."""
    note = "" if one.verdict == BETTER else f" {one.verdict}"
    return f"{one.ratio:.2f} [{one.gap.low:+.3f}, {one.gap.high:+.3f}]{note}"


def main() -> int:
    """Print the tables of results folders as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", help="results of halftruth run studies/toml/defaults.toml")
    args = parser.parse_args()
    try:
        for folder in args.folders:
            view = View.open(Folder(folder))
            print("\n".join(markdown(view.loaded.study.problem.features, compare(view.table))), end="\n\n")
    except (StudyError, ValueError) as error:
        print(f"studies.defaults: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
