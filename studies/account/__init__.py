"""`halftruth account`: what each arm of a study claims, and what its releases cost by every way of counting."""

import argparse
import json
from pathlib import Path

EXAMPLES = """\
examples:
  halftruth account studies/toml/heavy-mean.toml
  halftruth account studies/toml/figure1.toml --set 'grid.epsilon=[1.0]'
  halftruth account studies/toml/heavy-mean.toml --json

No results are written. The study's tasks are made, for one repetition of its smallest n, and what one row is asked is
counted; about records they are answered here by synthetic holders, since later tasks follow from answers. Each arm is
counted by itself. Figures are levels at the study's delta, each of them a guarantee, rounded up:

  exact        what is attained: by Gaussian noise, or by randomised response at a pure level
  zCDP         zero-concentrated privacy, by the tight and by the simple conversion
  Renyi        a list of orders
  PLD          privacy loss distributions, with `pip install halftruth[accounting]`
  basic        levels of single releases, added
  advanced     advanced composition of single releases
  printed      the level for which Algorithm 2 of the 2022 paper asks for this noise

"releases" are those that one row is part of, of all that the arm asks for; "multiplier" is the noise's standard
deviation by sensitivity, "level" that of one pure release. docs/RECORDS.md has an example."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth account`."""
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, EXAMPLES
    parser.add_argument("study", metavar="STUDY", help="a study file (TOML)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="overrides", help="change a key of the study"
    )


def main(args: argparse.Namespace) -> int:
    """Run `halftruth account`: exit code 0; StudyError is wrong use."""
    from studies.account.asked import claims
    from studies.account.show import as_json, show
    from studies.load import load

    loaded = load(Path(args.study), args.overrides)
    found = list(claims(loaded.study, loaded.theta))
    if args.json:
        print(json.dumps(as_json(loaded.study, found), indent=2))
    else:
        show(loaded.study, found)
    return 0
