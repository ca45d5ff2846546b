"""Pains 77: the page that shows how to write a driver is run as a test."""

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs" / "driver.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)


async def test_the_driver_of_the_page_works(node: Any) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    exec(blocks()[0], names)
    _, kubelet = await node.start(names["Kvm"](), driver_name="kvm.example.com")
    claim = node.claim("c", {"driver": "kvm.example.com", "device": "kvm"})
    device = (await kubelet.prepare(claim))[claim.uid].devices[0]
    assert device.cdi_device_ids[0].startswith("kvm.example.com/claim=")
    assert await kubelet.unprepare(claim) == {claim.uid: ""}


def test_the_configuration_of_the_page_works() -> None:
    names: dict[str, Any] = {"__name__": "page"}
    exec(blocks()[1], names)
    assert names["Sharing"]().strategy == "Exclusive"


def test_the_device_status_of_the_page_is_accepted() -> None:
    from drakit.driver.devicestatus import verified

    names: dict[str, Any] = {"__name__": "page"}
    exec(blocks()[2], names)
    assert verified(names["UP"]) == names["UP"]


def test_every_option_that_the_page_names_exists() -> None:
    from drakit.driver.settings import OPTIONS

    flags = {option.flag for option in OPTIONS}
    assert set(re.findall(r"`(--[a-z-]+)`", DOCS.read_text(encoding="utf-8"))) <= flags


def test_the_error_kinds_of_the_page_exist() -> None:
    from drakit.driver import errors

    kinds = {getattr(errors, name).kind for name in errors.__all__ if hasattr(getattr(errors, name), "kind")}
    named = re.search(r"errors apart: (.*?)\.\n", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert named is not None
    assert set(re.findall(r"`(\w+)`", named[1])) <= kinds | {"lookup", "timeout", "internal"}
