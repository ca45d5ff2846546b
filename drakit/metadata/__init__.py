"""KEP-5304 device metadata: paths, model, writer, reader. A workload container imports this with msgspec alone."""
