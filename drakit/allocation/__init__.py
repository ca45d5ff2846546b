"""Scheduler-side allocation: pools, selectors, constraints, counters, capacity, search, explain, verify. Pure."""
