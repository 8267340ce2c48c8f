"""Compiled code is kept beside the kernels, and never older than they are."""

import os
from pathlib import Path

import client.kernels
import server.kernels
from protocol.compiling import forget_stale


def test_old_machine_code_is_dropped_when_any_kernel_changed(tmp_path: Path) -> None:
    kept = tmp_path / "__pycache__"
    kept.mkdir()
    stale, fresh, other = (kept / name for name in ("kernels_a.nbi", "kernels_b.nbi", "else.nbi"))
    for path in (stale, fresh, other):
        path.touch()
    os.utime(stale, (0, 0))
    os.utime(other, (0, 0))
    forget_stale(tmp_path)
    assert [path.exists() for path in (stale, fresh, other)] == [False, True, True]


def test_machine_code_is_dropped_when_a_neighbour_is_newer(tmp_path: Path) -> None:
    kept, neighbour = tmp_path / "__pycache__" / "kernels_a.nbi", tmp_path / "kernels_b.py"
    kept.parent.mkdir()
    neighbour.touch()
    kept.touch()
    os.utime(kept, (neighbour.stat().st_mtime - 10,) * 2)
    forget_stale(tmp_path)
    assert not kept.exists()


def test_both_sides_compile_in_one_way() -> None:
    for function in (client.kernels.fill, server.kernels.fold):
        options = function.targetoptions  # type: ignore[attr-defined]
        assert options["nogil"] and not options["fastmath"] and options["error_model"] == "numpy"
