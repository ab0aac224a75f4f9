"""Certificates and keys of a control plane that lives as long as its tests.

One authority signs the API server's certificate and those of two clients: the tests'
own, in group `system:masters`, and the controller manager's, under the name that
Kubernetes' own role binding expects. Keys are elliptic (P-256): making one takes
about a millisecond.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = dt.timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key.

    Attributes:
        certificate: File of the certificate.
        key: File of the key.
    """

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Certificates:
    """All files of a control plane.

    Attributes:
        authority: Certificate of the authority.
        server: The API server's.
        tests: The tests' own, in group `system:masters`.
        controller_manager: The controller manager's.
        account_key: Key that signs service account tokens.
        account_public_key: Key that checks them.
    """

    authority: Path
    server: Pair
    tests: Pair
    controller_manager: Pair
    account_key: Path
    account_public_key: Path


def make_certificates(folder: Path) -> Certificates:
    """Make all certificates and keys in a folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("runfleet-tests")
    authority = (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    issuer = _Issuer(folder, authority, key)
    account = ec.generate_private_key(ec.SECP256R1())
    return Certificates(
        _write(folder / "authority.crt", _pem(authority)),
        issuer.server("apiserver"),
        issuer.client("tests", "system:masters"),
        issuer.client("system:kube-controller-manager"),
        _write(folder / "accounts.key", _private(account)),
        _write(folder / "accounts.pub", _public(account)),
    )


@dataclass(frozen=True)
class _Issuer:
    folder: Path
    authority: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def server(self, name: str) -> Pair:
        names = x509.SubjectAlternativeName(
            [
                x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
                x509.DNSName("localhost"),
            ]
        )
        return self._pair(_name(name), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, name: str, group: str = "") -> Pair:
        return self._pair(_name(name, group), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _pair(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self.authority.subject, key.public_key())
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(
                    self.key.public_key()
                ),
                critical=False,
            )
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        [common] = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        base = str(common.value).replace(":", "-")
        return Pair(
            _write(self.folder / f"{base}.crt", _pem(certificate)),
            _write(self.folder / f"{base}.key", _private(key)),
        )


def _name(common: str, group: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if group:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + _LIFE)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _public(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _write(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path
