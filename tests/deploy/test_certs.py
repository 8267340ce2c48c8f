"""Certificates: made once, kept while good, renewed by the same authority, and words for what is wrong."""

import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from deploy.certs import CA, CA_KEY, CERTIFICATE, KEY, LOOPBACK, ensure, read
from protocol.strict import StudyError
from studies.cli import main

LATER = datetime.now(UTC) + timedelta(days=400)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_second_run_keeps_every_byte(tmp_path: Path) -> None:
    found, made = ensure(tmp_path, ("federation.example.org", "10.0.0.5", "2001:DB8::1"))
    assert found.hosts == (*LOOPBACK, "federation.example.org", "10.0.0.5", "2001:db8::1")
    assert set(made) == {CA, CA_KEY, CERTIFICATE, KEY}
    before = contents(tmp_path)
    assert ensure(tmp_path, ("10.0.0.5",)) == (found, [])
    assert contents(tmp_path) == before


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    ensure(tmp_path / "certs")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "certs").iterdir()}
    assert modes == {CA: 0o644, CERTIFICATE: 0o644, CA_KEY: 0o600, KEY: 0o600}
    assert stat.S_IMODE((tmp_path / "certs").stat().st_mode) == 0o700


def test_openssl_takes_the_chain_for_its_hosts_only(tmp_path: Path) -> None:
    found, _ = ensure(tmp_path, ("federation.example.org",))
    verify = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", str(found.authority)]
    for flag, host, good in (
        ("-verify_hostname", "federation.example.org", True),
        ("-verify_hostname", "other.example.org", False),
        ("-verify_ip", "127.0.0.1", True),
        ("-verify_ip", "10.0.0.5", False),
    ):
        done = subprocess.run([*verify, flag, host, str(found.certificate)], capture_output=True, check=False)
        assert (done.returncode == 0) == good, (host, done.stderr)


def test_a_missing_host_is_named_and_renewing_adds_it(tmp_path: Path) -> None:
    old, _ = ensure(tmp_path, ("old.example.org",))
    before = contents(tmp_path)
    with pytest.raises(StudyError, match=r"expected it to hold new\.example\.org.*--renew"):
        ensure(tmp_path, ("new.example.org",))
    assert contents(tmp_path) == before
    new, made = ensure(tmp_path, ("new.example.org",), renew=True)
    assert set(made) == {CERTIFICATE, KEY}
    assert new.hosts == (*LOOPBACK, "old.example.org", "new.example.org")
    after = contents(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {CERTIFICATE, KEY}
    assert read(tmp_path) == new != old


def test_what_expired_is_renewed_and_never_longer_than_its_authority(tmp_path: Path) -> None:
    ensure(tmp_path)
    with pytest.raises(StudyError, match=r"expired on .*--renew"):
        read(tmp_path, LATER)
    with pytest.raises(StudyError, match=r"expired on .*--renew"):
        ensure(tmp_path, now=LATER)
    renewed, _ = ensure(tmp_path, renew=True, days=100_000, now=LATER)
    assert renewed.until == x509.load_pem_x509_certificate((tmp_path / CA).read_bytes()).not_valid_after_utc
    assert read(tmp_path, LATER) == renewed
    with pytest.raises(StudyError, match=r"ca\.crt: .*expired on .*nodes need the new one"):
        ensure(tmp_path, renew=True, now=LATER + timedelta(days=4000))
    with pytest.raises(StudyError, match="see the clock"):
        read(tmp_path, LATER - timedelta(days=500))


def test_files_that_do_not_fit_are_named(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ensure(ours)
    ensure(theirs)
    for name, words in ((CA, "another authority's"), (KEY, "got another one's: .*--renew")):
        kept = (ours / name).read_bytes()
        (ours / name).write_bytes((theirs / name).read_bytes())
        with pytest.raises(StudyError, match=words):
            ensure(ours)
        (ours / name).write_bytes(b"nonsense")
        with pytest.raises(StudyError, match=f"{name}: expected a .* in PEM"):
            ensure(ours)
        (ours / name).write_bytes(kept)
    (ours / CA_KEY).unlink()
    ensure(ours)  # the authority's key may be kept elsewhere
    with pytest.raises(StudyError, match=r"ca\.key: .*found none: bring it here"):
        ensure(ours, renew=True)
    (ours / CA_KEY).write_bytes((theirs / CA_KEY).read_bytes())
    with pytest.raises(StudyError, match=r"ca\.key: .*got another one's"):
        ensure(ours, renew=True)
    with pytest.raises(StudyError, match=r"found none: make it with halftruth certs"):
        read(tmp_path / "nowhere")


def test_half_of_them_is_completed_or_said_how(tmp_path: Path) -> None:
    ensure(tmp_path)
    (tmp_path / CERTIFICATE).unlink()
    assert set(ensure(tmp_path)[1]) == {CERTIFICATE, KEY}
    (tmp_path / KEY).unlink()
    with pytest.raises(StudyError, match=r"found none: make it with halftruth certs .* --renew"):
        ensure(tmp_path)
    assert set(ensure(tmp_path, renew=True)[1]) == {CERTIFICATE, KEY}
    for name in (CA, CERTIFICATE):
        (tmp_path / name).unlink()
    with pytest.raises(StudyError, match=r"ca\.crt: expected the certificate of .*ca\.key, found none: bring it here"):
        ensure(tmp_path)


@pytest.mark.parametrize("host", ["", "a b", "x:8443", "https://x", "naïve.org", "a..b"])
def test_hosts_are_names_or_addresses(tmp_path: Path, host: str) -> None:
    with pytest.raises(StudyError, match="--host: expected a name"):
        ensure(tmp_path, (host,))


def test_the_command_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("certs", str(tmp_path / "c"), "--host", "federation.example.org")
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("Made: ")
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("Kept: ")
    assert main((*words, "--host", "new.example.org")) == 2
    assert "--renew" in capsys.readouterr().err
    assert main((*words, "--host", "new.example.org", "--renew")) == 0
    assert "new.example.org" in capsys.readouterr().out
