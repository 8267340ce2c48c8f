"""What images promise: server and node run without capabilities on a root file system that nobody can write to."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.ports import free_port

ROOT = Path(__file__).parents[2]
# In namespaces of its own, whose processes end with the first: /srv is memory, and everything else can only be read.
INSIDE = """
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs /srv
mount -o remount,bind,ro /
mkdir /srv/tmp && cd /srv
export HOME=/srv/tmp TMPDIR=/srv/tmp MPLCONFIGDIR=/srv/tmp HALFTRUTH_KERNELS=/srv/state/kernels
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs sh -eu -c "$1"
"""
STEPS = """
! touch /etc/written 2> /dev/null
grep -q 'CapEff:.0000000000000000' /proc/self/status
halftruth() { "$PYTHON" -m studies "$@"; }
halftruth certs certs
"$PYTHON" -m studies server --state state --port "$PORT" --certs certs > server.log &
server=$!
until grep -q 'ready at' server.log; do kill -0 $server; sleep 1; done
"$PYTHON" -m deploy.health "$PORT" --certs certs
halftruth keys new node.key
halftruth keys register north node.key.pub --state state
link="--superlink 127.0.0.1:$PORT --certs certs/ca.crt --key node.key"
"$PYTHON" -m studies node --part 0/1 $link --port "$NODE_PORT" > node.log 2>&1 &
node=$!
until "$PYTHON" -m deploy.health "$NODE_PORT"; do kill -0 $node; sleep 1; done
halftruth run "$STUDY" --out out --on deployment --federation state > /dev/null
ls state/kernels
kill $node $server
wait
"""


@pytest.mark.slow
def test_a_study_on_a_root_file_system_that_is_read_only(small: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None:
        pytest.skip("expected root, unshare and setpriv")
    told = {"PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "STUDY": str(small)}
    told |= {"PORT": str(free_port()), "NODE_PORT": str(free_port())}
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", INSIDE, "sh", STEPS],
        env={**os.environ, **told},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kernels-" in done.stdout, "kernels were compiled, and kept where that is possible"
