"""The serving certificates of the API and the webhooks, when nobody else provides them.

One folder holds ``ca.crt``, ``ca.key``, ``tls.crt`` and ``tls.key``, the names that cert-manager and kubernetes.io/tls
Secrets use, so a mounted folder works the same way: it is then used as it is and never written. A leaf that runs out
within `RENEW_BEFORE` is made anew at start; clients hold the CA, so nobody notices.
"""

import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from app.errors import Misconfigured

CA_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Certificates:
    ca: Path
    certificate: Path
    key: Path

    def ca_pem(self) -> bytes:
        return self.ca.read_bytes()


def ensure(folder: Path, hosts: Sequence[str], now: datetime) -> Certificates:
    """Certificates for `hosts` (names or addresses) in `folder`, made there unless they are already good.

    Raises Misconfigured where the folder cannot be used.
    """
    found = Certificates(folder / "ca.crt", folder / "tls.crt", folder / "tls.key")
    try:
        if _serves(found.certificate, hosts, now):
            return found
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        ca, ca_key = _load_ca(folder, now) or _make_ca(folder, now)
        _make_leaf(found, hosts, ca, ca_key, now)
    except (OSError, ValueError) as error:
        raise Misconfigured(f"cannot prepare serving certificates in {folder}: {error}") from error
    return found


def _serves(path: Path, hosts: Sequence[str], now: datetime) -> bool:
    if not path.exists():
        return False
    leaf = x509.load_pem_x509_certificate(path.read_bytes())
    if leaf.not_valid_after_utc - RENEW_BEFORE < now:
        return False
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return all(_general_name(host) in names for host in hosts)


def _load_ca(
    folder: Path, now: datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None:
    if not (folder / "ca.key").exists():
        return None
    ca = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), password=None)
    if ca.not_valid_after_utc - LEAF_LIFE < now or not isinstance(key, ec.EllipticCurvePrivateKey):
        return None
    return ca, key


def _make_ca(folder: Path, now: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("sluice-ca")
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = (
        _builder(name, name, key, now, CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    ca = builder.sign(key, hashes.SHA256())
    _write(folder / "ca.key", _pem(key))
    _write(folder / "ca.crt", ca.public_bytes(serialization.Encoding.PEM))
    return ca, key


def _make_leaf(
    to: Certificates,
    hosts: Sequence[str],
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    now: datetime,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    builder = (
        _builder(_name(hosts[0]), ca.subject, key, now, LEAF_LIFE)
        .add_extension(
            x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(authority, critical=False)
    )
    leaf = builder.sign(ca_key, hashes.SHA256())
    _write(to.key, _pem(key))
    _write(to.certificate, leaf.public_bytes(serialization.Encoding.PEM))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes) -> None:
    """Readable by us alone from the first byte, and never seen half-written."""
    fresh = path.with_suffix(path.suffix + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    fresh.replace(path)
