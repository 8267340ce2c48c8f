"""Words that the command line does not know bring those that were meant."""

import pytest

from studies.cli import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnu"], "did you mean run?"),
        (["reprot", "out"], "did you mean report?"),
        (["data", "chek", "votes.csv"], "did you mean check?"),
        (["fit", "votes.csv", "--trust", "locl"], "did you mean local?"),
        (["fit", "votes.csv", "--epsilom", "1"], "unknown option --epsilom; did you mean --epsilon?"),
        (["fit", "votes.csv", "--epsilom=1"], "unknown option --epsilom; did you mean --epsilon?"),
        (["records", "--colums", "loss", "losses.csv"], "unknown option --colums; did you mean --columns?"),
        (["run", "study.toml", "--colour"], "unknown option --colour\n"),
    ],
)
def test_what_was_meant_is_suggested(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in said and said.startswith(
        f"usage: halftruth {words[0] if '--' in ' '.join(words) else ''}".rstrip()
    )


def test_abbreviations_and_words_after_two_dashes_are_no_unknown_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "nowhere.csv", "--trust", "local", "--eps", "1"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err
    assert main(["data", "check", "--", "--nowhere.csv"]) == 2
    assert "--nowhere.csv" in capsys.readouterr().err
