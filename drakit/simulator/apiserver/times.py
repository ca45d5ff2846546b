"""Times as the API writes them."""

from datetime import datetime

__all__ = ["timestamp"]


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
