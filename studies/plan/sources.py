"""Where an assumption comes from: a study, a pilot, a covariance, a law of features."""

import argparse
from pathlib import Path

import numpy as np

from protocol.coins import Floats
from protocol.counting import counted
from protocol.problem import DRAWN, MOST_DIMENSIONS
from protocol.strict import StudyError, integer, unopened
from studies.files import NOT_NUMPY, read_features, unloaded
from studies.folder import Folder, open_study
from studies.load import load
from studies.plan.assumed import SEED, Assumed, Correlated, check, read_problem
from studies.plan.pilot import read_pilot
from studies.theory.sandwich import Theory

DEFAULT = Path(__file__).parents[1] / "toml" / "figure1.toml"


def assume(args: argparse.Namespace) -> Assumed:
    """The assumption that the flags name. Raises StudyError where they or a file do not fit, or `check` fails."""
    named = [name for name in ("study", "pilot", "covariance", "features") if getattr(args, name) is not None]
    if len(named) > 1:
        raise StudyError(f"expected one of --study, --pilot, --covariance and --features, got {len(named)}")
    source = named[0] if named else "study"
    own = {"dimension": args.dimension, "theta": args.theta, "bound": args.bound, "sum-zero": args.sum_zero or None}
    taken = {
        "study": (),
        "pilot": ("bound", "sum-zero"),
        "covariance": ("theta", "bound", "sum-zero"),
        "features": tuple(own),
    }
    for name, value in own.items():
        if value is not None and name not in taken[source]:
            raise StudyError(f"--{name}: does not go with --{source}, which says it itself: leave it out")
    if source == "study":
        return check(_study(DEFAULT if args.study is None else Path(args.study), default=args.study is None))
    if source == "pilot":
        return check(read_pilot(args))
    return check(_covariance(args) if source == "covariance" else _law(args))


def _study(path: Path, default: bool) -> Assumed:
    loaded = open_study(Folder(path)) if path.is_dir() else load(path)
    study = loaded.study
    said = ", since nothing else is said" if default else ""
    return Assumed(Theory(study.problem, loaded.theta, study.seed), f"the problem of study {study.name}{said}")


def _law(args: argparse.Namespace) -> Assumed:
    if args.dimension is None:
        raise StudyError("--features: expected --dimension D with it")
    dimension = integer(args.dimension, "--dimension", 1, MOST_DIMENSIONS)
    theta = _theta(args.theta, dimension)
    if args.features in DRAWN:
        problem = read_problem(args, dimension, args.features)
        return Assumed(Theory(problem, theta, SEED), f"{args.features} features in {counted(dimension, 'dimension')}")
    design = read_features(Path(args.features), dimension)
    problem = read_problem(args, dimension, "values", design)
    return Assumed(
        Theory(problem, theta, SEED), f"labels spread evenly over the {len(design):,} rows of {args.features}"
    )


def _covariance(args: argparse.Namespace) -> Assumed:
    path = Path(args.covariance)
    matrix = _matrix(path)
    theta = _theta(args.theta, len(matrix))
    problem = read_problem(args, len(matrix), "gaussian")
    return Assumed(Correlated(problem, theta, matrix), f"normal rows x with the covariance in {path}")


def _matrix(path: Path) -> Floats:
    try:
        matrix = (
            np.load(path, allow_pickle=False) if path.suffix == ".npy" else np.loadtxt(path, delimiter=",", ndmin=2)
        )
    except OSError as error:
        raise StudyError(f"--covariance {path}: expected a file of numbers, {unopened(error)}") from None
    except NOT_NUMPY as error:
        raise StudyError(f"--covariance {path}: expected .npy, or numbers with commas, {unloaded(error)}") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise StudyError(f"--covariance {path}: expected a square matrix, got shape {matrix.shape}")
    if matrix.dtype.kind not in "fiu" or not np.isfinite(matrix).all():
        raise StudyError(f"--covariance {path}: expected finite numbers")
    matrix = matrix.astype(np.float64)
    values = np.linalg.eigvalsh(matrix)
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0) or values[0] < -1e-9 * values[-1] or values[-1] <= 0:
        raise StudyError(f"--covariance {path}: expected a symmetric matrix without negative eigenvalues")
    return np.asarray(matrix)


def _theta(text: str | None, dimension: int) -> Floats:
    zeros = ",".join(["0"] * min(dimension, 3))
    if text is None:
        raise StudyError(f"expected --theta with numbers, such as --theta {zeros}, the most favourable case")
    try:
        theta = np.array([float(number) for number in text.split(",")])
    except ValueError:
        raise StudyError(f"--theta: expected numbers with commas between them, got {text!r}") from None
    if len(theta) != dimension or not np.isfinite(theta).all():
        raise StudyError(f"--theta: expected {dimension} finite numbers, got {text!r}")
    return theta
