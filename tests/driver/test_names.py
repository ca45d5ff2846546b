"""Socket names (R4-R9; scenarios 1-6 of spec/kubeletplugin.md section 8) and what may become a path."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.driver import names

REGISTRY = "/var/lib/kubelet/plugins_registry"
PLUGINS = "/var/lib/kubelet/plugins"
UID = "3d2a1c57-6c5f-4a58-a1c2-8c3f2c3b9d10"


def test_r4_without_a_pod_uid_names_are_fixed() -> None:
    assert str(names.registration_socket(REGISTRY, "gpu.example.com")) == f"{REGISTRY}/gpu.example.com-reg.sock"
    assert str(names.service_socket(f"{PLUGINS}/gpu.example.com")) == f"{PLUGINS}/gpu.example.com/dra.sock"


@pytest.mark.parametrize(
    ("length", "form"),
    [
        (1, "full"),
        (27, "full"),  # 107 bytes
        (28, "hashed"),  # full would be 108
        (52, "hashed"),  # 107 bytes
        (53, "shortest"),
        (63, "shortest"),
    ],
)
def test_r5_r6_the_first_form_that_fits_in_107_bytes(length: Any, form: Any) -> None:
    driver = "d" * length
    path = names.registration_socket(REGISTRY, driver, UID)
    full, hashed = f"{driver}-{UID}-reg.sock", f"{driver}-___________-reg.sock"
    assert {"full": path.name == full, "hashed": len(path.name) == len(hashed), "shortest": True}[form]
    assert path.name.startswith("dra-" if form == "shortest" else driver)
    assert names.fits(path)


def test_r5_the_hashes_are_those_that_other_tools_compute() -> None:
    # base64url without padding of sha256(uid)[:8] and of sha256(driver, NUL, uid)[:16]
    long, longest = "d" * 40, "d" * 63
    assert names.registration_socket(REGISTRY, long, "uid-1").name == f"{long}-uid-1-reg.sock"
    assert names.registration_socket(REGISTRY, long, UID).name == f"{long}-{_H8}-reg.sock"
    assert names.registration_socket(REGISTRY, longest, UID).name == f"dra-{_H16}-reg.sock"


def _sha(text: bytes, length: int) -> str:
    import base64
    import hashlib

    return base64.urlsafe_b64encode(hashlib.sha256(text).digest()[:length]).decode().rstrip("=")


_H8 = _sha(UID.encode(), 8)
_H16 = _sha(b"d" * 63 + b"\0" + UID.encode(), 16)


@pytest.mark.parametrize(("length", "full"), [(36, True), (37, False), (63, False)])
def test_r7_the_service_socket_is_shortened_when_too_long(length: Any, full: Any) -> None:
    path = names.service_socket(f"{PLUGINS}/{'d' * length}", UID)
    assert path.name == (f"dra-{UID}.sock" if full else f"dra-{_H8}")
    assert len(str(path)) == {36: 107, 37: 37 + 41, 63: 104}[length]
    assert names.fits(path)


def test_pains_31_an_impossible_path_is_a_clear_error() -> None:
    path = names.registration_socket("/x" * 60, "gpu.example.com", UID)
    with pytest.raises(names.SocketPathError, match=r"has \d+ bytes, the kernel allows 107: use a shorter directory"):
        names.check_socket_path(path)


@given(st.text("abcdefghijklmnop", min_size=1, max_size=63), st.text("abcdef0123456789-", min_size=1, max_size=36))
def test_names_are_stable_distinct_and_fit_the_default_directories(driver: Any, uid: Any) -> None:
    path = names.registration_socket(REGISTRY, driver, uid)
    assert path == names.registration_socket(REGISTRY, driver, uid)
    assert path != names.registration_socket(REGISTRY, driver, f"{uid}x")
    assert path != names.registration_socket(REGISTRY, f"{driver}x", uid)
    assert names.fits(path)
    assert names.fits(names.service_socket(Path(PLUGINS, driver), uid))


@pytest.mark.parametrize("name", ["gpu.example.com", "3d.example.com", "a", "a" * 63])
def test_driver_names(name: Any) -> None:
    assert names.check_driver_name(name) == name


@pytest.mark.parametrize("name", ["", "GPU.example.com", "a_b", "-a", "a-", "a..b", "a" * 64, "ä.com", "a/b", "a\n"])
def test_invalid_driver_names(name: Any) -> None:
    with pytest.raises(names.DriverNameError, match=r"for example gpu\.example\.com"):
        names.check_driver_name(name)


@pytest.mark.parametrize(
    ("namespace", "name", "uid"),
    [
        ("", "c", "u"),
        ("..", "c", "u"),
        ("a" * 64, "c", "u"),
        ("ns", "", "u"),
        ("ns", "../x", "u"),
        ("ns", ".hidden", "u"),
        ("ns", "c" * 254, "u"),
        ("ns", "c", ""),
        ("ns", "c", "../u"),
        ("ns", "c", "u" * 65),
        ("ns", "c", "u\n"),
    ],
)
def test_identities_that_must_not_become_paths(namespace: Any, name: Any, uid: Any) -> None:
    with pytest.raises(names.IdentityError):
        names.check_identity(namespace, name, uid)


def test_subrequests_are_cut_off() -> None:
    assert names.base_request("gpu/big") == "gpu"
    assert names.base_request("gpu") == "gpu"
