"""Names by which columns are known. What is guessed from them is shown; of two possible guesses none is made."""

LABELERS = (
    *("labeler", "labeler_id", "labeller", "labeller_id", "worker", "worker_id", "judge", "judge_id", "assessor"),
    *("assessor_id", "annotator", "annotator_id", "rater", "rater_id", "respondent", "respondent_id", "voter"),
    *("voter_id", "user", "user_id", "farmer", "farmer_id"),
)
PAIRS = (
    *(("item_a", "item_b"), ("item_1", "item_2"), ("model_a", "model_b"), ("model_x", "model_y"), ("left", "right")),
    *(("home", "away"), ("option_a", "option_b"), ("home_team", "away_team"), ("team_a", "team_b")),
    *(("player_1", "player_2"), ("player1", "player2"), ("output_1", "output_2")),
)
WINNERS = ("winner", "result", "outcome", "preference", "choice")
WINS = (
    *(("home_wins", "away_wins"), ("wins_a", "wins_b"), ("a_wins", "b_wins"), ("item_a_wins", "item_b_wins")),
    *(("wins_1", "wins_2"), ("wins1", "wins2"), ("win1", "win2"), ("winner_model_a", "winner_model_b")),
)
TIE_COUNTS = ("ties", "draws", "winner_tie")
LOSERS = {
    "loser": "winner",
    "bottom_item": "top_item",
    "rejected": "chosen",
    "rejected_response": "chosen_response",
    "response_k": "response_j",
}
QUESTIONS = ("question", "question_id", "prompt", "prompt_id", "turn", "criterion")  # one more would name labels anew
TEXTS = (  # columns whose values are answers: one may be the empty text
    *("chosen", "rejected", "chosen_response", "rejected_response", "response_j", "response_k", "response_a"),
    *("response_b", "output_1", "output_2", "completion_a", "completion_b", "summaries", "completions"),
)


def plain(name: str) -> str:
    """A name as tables of names spell it: lower case, words joined by underscores."""
    return name.lower().replace(" ", "_").replace(".", "_").replace("-", "_")
