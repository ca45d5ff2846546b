"""A fake kubelet over real sockets, by the recorded timer table.

`decisions` is pure: decide(state, event) -> (state, actions). `wire`, `connection`, `registry` do the I/O of plugins,
`plugins` joins them, `pods` drives pods, `fake` is the whole. What a runtime must offer stands in `cri`.
"""

from drakit.simulator.kubelet.fake import FakeKubelet
from drakit.simulator.kubelet.plugins import PluginError, Plugins
from drakit.simulator.kubelet.timers import RECORDED, Timers

__all__ = ["RECORDED", "FakeKubelet", "PluginError", "Plugins", "Timers"]
