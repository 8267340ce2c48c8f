"""Choices of a simulated curator: the noise of `server.mechanisms` in doubles, from addressed coins."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from protocol.coins import Words
from server.choice_record import ChoiceRequest, SimulatedChoice, is_look
from server.mechanisms.exact_choices import HISTOGRAM
from server.mechanisms.selection_noise import gumbel, laplace
from server.mechanisms.selection_rounds import Rounds, shared_rounds


def words_wanted(request: ChoiceRequest) -> int:
    """How many words `simulated_choice` takes: rows of one a score."""
    return request.width * (1 if is_look(request) else _rounds(request).word_rows)


def simulated_choice(request: ChoiceRequest, scores: Sequence[int], words: Words) -> SimulatedChoice:
    """What `server.mechanisms.exact_choices:Chooser` chooses, with noise of doubles; ties go to the lowest place.

    Guarantee: none. Raises TypeError and ValueError for scores or words that do not fit.
    """
    if len(scores) != request.width or words.shape != (words_wanted(request),):
        raise ValueError(f"expected {request.width} scores, and words, got {len(scores)} and {words.shape}")
    chooser = request.chooser
    if request.mechanism == HISTOGRAM:
        noisy = np.array(scores, dtype=np.float64) + chooser.value_scale * laplace(words)
        return SimulatedChoice(request, tuple(range(request.width)), tuple(noisy.tolist()))
    if is_look(request):
        costs = [Fraction(abs(score), chooser.scale) + chooser.decay * place for place, score in enumerate(scores)]
        least = min(costs)
        found = gumbel(words) - np.array([float(cost - least) for cost in costs])
        return SimulatedChoice(request, (int(np.argmax(found)),), ())
    vector = np.array([float(score) for score in scores])
    selected = _rounds(request).select(vector, float(request.moved), words.reshape(-1, request.width))
    return SimulatedChoice(request, tuple(selected.support.tolist()), tuple(selected.values.tolist()))


def _rounds(request: ChoiceRequest) -> Rounds:
    return shared_rounds(
        request.mechanism, request.epsilon, request.delta, request.sparsity, request.rounds, request.share
    )
