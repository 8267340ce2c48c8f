"""A pilot as an assumption: its features and its estimate, from .npz or from the output of `halftruth fit --json`."""

import argparse
import json
from itertools import combinations
from pathlib import Path

import numpy as np

from protocol.decimals import decimal
from protocol.problem import Problem
from protocol.strict import StudyError, unopened
from protocol.warned import warn
from studies.files import NOT_NUMPY, read_features, unloaded
from studies.plan.assumed import SEED, Assumed, number, read_problem
from studies.theory.sandwich import Theory

MOST_ITEMS = 512  # every pair of items is a row
LONG = warn(
    "long-pilot", "a pilot's estimate is longer than the truth by its own noise: the plan errs towards more labels"
)
ON_BALL = "the pilot's estimate lies on its ball: its scores are too close to each other"


def read_pilot(args: argparse.Namespace) -> Assumed:
    """The assumption that a pilot's file makes. Raises StudyError where it does not read."""
    path = Path(args.pilot)
    if path.suffix == ".json":
        return _fit(path, args)
    try:
        with np.load(path, allow_pickle=False) as stored:
            missing = [name for name in ("x", "theta") if name not in stored]
            if missing:
                raise StudyError(f"--pilot {path}: expected arrays x and theta, found {sorted(stored)}")
            theta = np.asarray(stored["theta"], dtype=np.float64)
    except StudyError:
        raise
    except OSError as error:
        raise StudyError(f"--pilot {path}: expected an .npz or .json file, {unopened(error)}") from None
    except (*NOT_NUMPY, AttributeError, TypeError) as error:
        raise StudyError(f"--pilot {path}: expected .npz with x and theta, or .json, {unloaded(error)}") from None
    if theta.ndim != 1 or not len(theta) or not np.isfinite(theta).all():
        raise StudyError(f"--pilot {path}: expected theta as a vector of finite numbers, got shape {theta.shape}")
    design = read_features(path, len(theta))
    theory = Theory(read_problem(args, len(theta), "values", design), theta, SEED)
    return Assumed(theory, f"labels spread over rows like the {len(design):,} of pilot {path}", (LONG,))


def _fit(path: Path, args: argparse.Namespace) -> Assumed:
    """The items of `halftruth fit --json`, every pair compared equally often."""
    if args.sum_zero:
        raise StudyError("--sum-zero: scores of items always sum to 0: leave it out")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        scores = np.array([float(line["estimate"]) for line in content["ranking"]])
        by_features, on_ball = bool(content["coefficients"]), bool(content["hit_boundary"])
        bound = None if content["bound"] is None else decimal(str(content["bound"]), "bound")
    except OSError as error:
        raise StudyError(f"--pilot {path}: expected the output of halftruth fit --json, {unopened(error)}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise StudyError(f"--pilot {path}: expected the output of halftruth fit --json, {error!r}") from None
    if by_features:
        raise StudyError(f"--pilot {path}: its items have features: give their differences and theta as .npz")
    if not 2 <= len(scores) <= MOST_ITEMS or not np.isfinite(scores).all():
        raise StudyError(f"--pilot {path}: expected 2 to {MOST_ITEMS} items with finite scores, got {len(scores)}")
    pairs = np.array(list(combinations(range(len(scores)), 2)), dtype=np.int32)
    bound = bound if args.bound is None else number(args.bound, "--bound")
    problem = Problem(len(scores), "items", True, bound, pairs)
    ball = (ON_BALL,) if on_ball else ()
    words = f"the {len(scores)} items of {path}, every pair compared equally often"
    return Assumed(Theory(problem, scores - scores.mean(), SEED), words, (LONG, *ball))
