"""A fake kubelet over real sockets, by the recorded timer table."""
