"""What the API server would answer: decode, convert, default, prune, validate, immutability. Pure."""

from drakit.admission.admit import admit, convert, validate
from drakit.admission.authorization import User
from drakit.admission.profiles import profile
from drakit.admission.request import Answer, Cause, Fault, Request

__all__ = ["Answer", "Cause", "Fault", "Request", "User", "admit", "convert", "profile", "validate"]
