"""`halftruth completion`: a script with which a shell completes commands, flags and choices."""

import argparse
from collections.abc import Iterator

SHELLS = ("bash", "zsh", "fish")
FOLDERS, FILES = ("DIR", "OUT", "FOLDER"), ("FILE", "STUDY", "PATH", "CRT")  # metavars of what lies on a disk
EXAMPLES = """\
examples:
  halftruth completion bash > ~/.local/share/bash-completion/completions/halftruth
  halftruth completion zsh > ~/.zfunc/_halftruth            with fpath+=~/.zfunc before compinit in ~/.zshrc
  halftruth completion fish > ~/.config/fish/completions/halftruth.fish

Make it again after an update."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth completion`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("shell", choices=SHELLS, help="whose script")


def main(args: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    from studies.cli import every_command

    parser = every_command()
    for action in _actions(parser):
        places = [action.metavar] if isinstance(action.metavar, str) else []
        if not set(places).isdisjoint(FOLDERS):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # which shtab looks for
        elif not set(places).isdisjoint(FILES):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=args.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Arguments of a parser and of all commands below it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
        else:
            yield action
