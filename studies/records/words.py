"""Messages about an arm or about columns, in the words of a command's flags instead of a study's tables."""

import re

from protocol.strict import StudyError

_WORDS = (
    (r"^\[\w+\] unknown key '(\w+)'.*", r"--\1: this estimator has no such option: leave it out"),
    (r"^\[\w+\] (\w+): ", r"--\1: "),
    (r"^\[\w+\] ", ""),
    (r"curvature and smoothness beside 'theory': .*", "--curvature and --smoothness beside 'theory'"),
    (r"norm = '(\w+)'", r"--norm \1"),
    (r'missing = "([\w-]+)"', r"--missing \1"),
)


def in_flags(error: StudyError) -> StudyError:
    """The same error, naming flags.

    >>> str(in_flags(StudyError("[arm] shape: expected one of ['clip', 'truncate'], got 'x'")))
    "--shape: expected one of ['clip', 'truncate'], got 'x'"
    """
    text = str(error)
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return StudyError(text)
