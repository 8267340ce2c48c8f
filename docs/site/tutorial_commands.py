"""Commands of tutorials, `!halftruth ...`: run as a reader's shell runs them, and an error where they fail."""

import os
import subprocess


def _run(command: str) -> None:
    colours = ("FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")  # which notebooks ask for, and pages show as codes
    strict = [] if "| head" in command else ["-o", "pipefail"]  # head closes its pipe, which may fail what writes
    done = subprocess.run(
        ["bash", *strict, "-c", command],
        env={key: value for key, value in os.environ.items() if key not in colours},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(done.stdout, end="")
    if done.returncode:
        raise RuntimeError(f"{command}: exit code {done.returncode}")


get_ipython().system = _run  # type: ignore[name-defined]  # noqa: F821
