"""Fixtures of the simulated cluster. Heavy rooms are imported inside the fixtures: every pytest run loads this file."""
