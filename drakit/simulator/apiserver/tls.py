"""A certificate authority of its own for each fake API server, server and client certificates signed by it."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Authority", "Pair", "server_context"]

_VALID = timedelta(days=365)
_LEEWAY = timedelta(hours=1)
"""Certificates start in the past: clocks of client and server need not agree to the second."""


class Pair:
    """A certificate with its key, both PEM."""

    def __init__(self, certificate: bytes, key: bytes) -> None:
        """Keep both."""
        self.certificate = certificate
        self.key = key

    def write(self, directory: Path, stem: str) -> tuple[Path, Path]:
        """Write `STEM.crt` and `STEM.key` (mode 0600); returns both paths."""
        certificate, key = directory / f"{stem}.crt", directory / f"{stem}.key"
        certificate.write_bytes(self.certificate)
        key.touch(mode=0o600)
        key.write_bytes(self.key)
        return certificate, key


class Authority:
    """Signs with a fresh P-256 key; one per server, so that trusting one never trusts another."""

    def __init__(self, common_name: str = "drakit-ca") -> None:
        """Make key and self-signed certificate."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name)
        self._certificate = (
            _builder(name, name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(ca=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def certificate(self) -> bytes:
        """The authority's certificate, PEM."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, hosts: list[str]) -> Pair:
        """A server certificate for `hosts` (names and addresses)."""
        names: list[x509.GeneralName] = []
        for host in hosts:
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(host)))
            except ValueError:
                names.append(x509.DNSName(host))
        return self._sign(_name("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(names))

    def client(self, user: str, groups: tuple[str, ...] = ()) -> Pair:
        """A client certificate: the user is its common name, the groups its organizations."""
        return self._sign(_name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _sign(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, names: x509.SubjectAlternativeName | None
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Pair(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), pem)


def server_context(directory: Path, authority: Authority, hosts: list[str]) -> ssl.SSLContext:
    """A context that asks for client certificates of `authority` but does not demand them (tokens work as well)."""
    certificate, key = authority.server(hosts).write(directory, "apiserver")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(cadata=authority.certificate.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _name(common_name: str, organizations: tuple[str, ...] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _LEEWAY)
        .not_valid_after(now + _VALID)
    )


def _usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )
