"""The drakit command."""
