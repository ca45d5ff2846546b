"""Scheduler and controllers as pure decisions over drakit.allocation."""
