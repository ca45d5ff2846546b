"""Ready-made drivers, built on the SDK's public names only."""
