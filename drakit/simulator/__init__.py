"""A cluster without hardware: API server, kubelet, runtime, control plane, each a room of its own."""
