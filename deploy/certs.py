"""A certificate authority and a server's certificate: made once, kept while they are good, renewed on request."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from deploy.secret_files import OWN_FOLDER, PUBLIC, replace, write_new
from protocol.strict import StudyError, make_folder, unopened

CA, CA_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "server.crt", "server.key"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
DAYS, CA_DAYS = 365, 3650
EARLY = timedelta(minutes=5)  # clocks differ


@dataclass(frozen=True)
class Certificates:
    """The files of a server: the authority that nodes trust, the certificate and its key; and what it says."""

    authority: Path
    certificate: Path
    key: Path
    hosts: tuple[str, ...]
    until: datetime


def read(folder: Path, now: datetime | None = None) -> Certificates:
    """The certificates of a folder. Raises StudyError where one is missing, expired or does not fit the others."""
    paths = {name: folder / name for name in (CA, CERTIFICATE, KEY)}
    for path in paths.values():
        if not path.is_file():
            renew = " --renew" if path.name == KEY else ""
            raise StudyError(f"{path}: expected a file, found none: make it with halftruth certs {folder}{renew}")
    authority, certificate = _certificate(paths[CA]), _certificate(paths[CERTIFICATE])
    _check_time(paths[CA], authority, "nodes need the new one: move the old files away, then halftruth certs", now)
    _check_time(paths[CERTIFICATE], certificate, f"renew it with halftruth certs {folder} --renew", now)
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        raise StudyError(
            f"{paths[CERTIFICATE]}: expected a certificate of {paths[CA]}, got another authority's: "
            "nodes that trust this one would refuse the server"
        ) from None
    if _key(paths[KEY]).public_key() != certificate.public_key():
        raise StudyError(
            f"{paths[KEY]}: expected the key of {paths[CERTIFICATE]}, got another one's: make both anew with "
            f"halftruth certs {folder} --renew"
        )
    hosts, until = _hosts(certificate), certificate.not_valid_after_utc
    return Certificates(paths[CA], paths[CERTIFICATE], paths[KEY], hosts, until)


def ensure(
    folder: Path, hosts: tuple[str, ...] = (), *, days: int = DAYS, renew: bool = False, now: datetime | None = None
) -> tuple[Certificates, list[str]]:
    """Make what is not there, and return the certificates with the names of the files that were made.

    The server's certificate holds `hosts` (names and addresses) and those of the loopback interface; `renew` issues a
    new one for these and the old one's hosts, by the same authority. Keys are readable by their owner only.

    Raises StudyError where a file is not usable, expired, or lacks a host.
    """
    now = now or datetime.now(UTC)
    make_folder(folder, "DIR", OWN_FOLDER)
    made = [] if (folder / CA).exists() or (folder / CA_KEY).exists() else _make_authority(folder, now)
    wanted = tuple(dict.fromkeys((*LOOPBACK, *map(_canonical, hosts))))
    if not (folder / CERTIFICATE).exists():
        made += _issue(folder, wanted, days, now)
    elif renew:
        before = _hosts(_certificate(folder / CERTIFICATE)) if (folder / CERTIFICATE).exists() else ()
        made += _issue(folder, tuple(dict.fromkeys((*before, *wanted))), days, now)
    found = read(folder, now)
    if missing := [host for host in wanted if host not in found.hosts]:
        raise StudyError(
            f"{found.certificate}: expected it to hold {', '.join(missing)}, it holds {', '.join(found.hosts)}: "
            "add --renew"
        )
    return found, made


def _make_authority(folder: Path, now: datetime) -> list[str]:
    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "halftruth federation")])
    usage = _usage(signs_certificates=True)
    certificate = (
        _builder(name, name, key.public_key(), now, now + timedelta(days=CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA384())
    )
    write_new(folder / CA_KEY, _pem(key))
    try:
        write_new(folder / CA, certificate.public_bytes(serialization.Encoding.PEM), PUBLIC)
    except OSError:  # a key that nobody knows is of no use, and would stand in the way
        (folder / CA_KEY).unlink()
        raise
    return [CA, CA_KEY]


def _issue(folder: Path, hosts: tuple[str, ...], days: int, now: datetime) -> list[str]:
    """A new key and certificate of the server, in place of what is there."""
    if not (folder / CA_KEY).is_file():
        raise StudyError(f"{folder / CA_KEY}: expected the authority's key to issue with, found none: bring it here")
    if not (folder / CA).is_file():
        raise StudyError(
            f"{folder / CA}: expected the certificate of {folder / CA_KEY}, found none: bring it here, or begin anew "
            "without that key"
        )
    authority, signer = _certificate(folder / CA), _key(folder / CA_KEY)
    issuer = signer.public_key()
    if issuer != authority.public_key():
        raise StudyError(f"{folder / CA_KEY}: expected the key of {folder / CA}, got another one's")
    _check_time(folder / CA, authority, "nodes need the new one: move the old files away, then halftruth certs", now)
    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "halftruth server")])
    until = min(now + timedelta(days=days), authority.not_valid_after_utc)
    certificate = (
        _builder(name, authority.subject, key.public_key(), now, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_name(host) for host in hosts]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        .sign(signer, hashes.SHA384())
    )
    replace(folder / KEY, _pem(key))
    replace(folder / CERTIFICATE, certificate.public_bytes(serialization.Encoding.PEM), PUBLIC)
    return [CERTIFICATE, KEY]


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    named = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    return named.serial_number(x509.random_serial_number()).not_valid_before(now - EARLY).not_valid_after(until)


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _check_time(path: Path, certificate: x509.Certificate, hint: str, now: datetime | None) -> None:
    now = now or datetime.now(UTC)
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begins:
        raise StudyError(f"{path}: expected a valid certificate, got one from {begins:%Y-%m-%d} on: see the clock")
    if now >= ends:
        raise StudyError(f"{path}: expected a valid certificate, got one that expired on {ends:%Y-%m-%d}: {hint}")


def _certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except OSError as error:
        raise StudyError(f"{path}: expected a certificate, {unopened(error)}") from None
    except ValueError:
        raise StudyError(f"{path}: expected a certificate in PEM, got something else") from None


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise StudyError(f"{path}: expected a private key, {unopened(error)}") from None
    except (ValueError, TypeError):
        raise StudyError(f"{path}: expected a private key in PEM without a passphrase, got something else") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise StudyError(f"{path}: expected a key of an elliptic curve, got another kind")
    return key


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def _hosts(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name.value) for name in names if isinstance(name, x509.DNSName | x509.IPAddress))


def _canonical(host: str) -> str:
    """An address in its one form, a name in small letters. Raises StudyError for what is neither."""
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    if not host or len(host) > 253 or not all(part.replace("-", "a").isalnum() for part in host.split(".")):
        raise StudyError(f"--host: expected a name or an address without a port, got {host!r}")
    if not host.isascii():
        raise StudyError(f"--host: expected a name in ASCII (xn--...), got {host!r}")
    return host.lower()


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
