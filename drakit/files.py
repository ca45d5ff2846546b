"""Atomic durable files and locks over a Filesystem object: the only place that renames, syncs, locks."""
