"""The node service and SDK: sockets, registration, DRAPlugin, claim tasks, state, publisher."""
