"""Opinions on manifests and CDI files, above admission and cdi."""
