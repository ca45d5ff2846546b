from drakit.simulator.kubelet.state import Claim, ClaimRef

DRIVER = "gpu.example.com"


def claim(name="c", *, pod="p1", drivers=(DRIVER,)):
    return Claim(ref=ClaimRef("default", name, f"uid-{name}"), drivers=drivers, reserved_for=(pod,))


async def test_a_plugin_is_registered_prepared_and_unprepared(bench):
    plugin = bench.plugin()
    await plugin.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)
        await kubelet.prepare("p1", "pod", (claim(),))
        assert kubelet.claims_in_use() == {DRIVER: 1}
        await kubelet.unprepare("p1", ("default/c",))
        assert kubelet.claims_in_use() == {}
    assert plugin.infos == 1
    assert plugin.statuses == [(True, "")]
    assert plugin.calls == [("v1.NodePrepareResources", ["c"]), ("v1.NodeUnprepareResources", ["c"])]
