"""Opinions on manifests and CDI files, above admission and cdi.

What lives here: reading files so that every value knows its line, what an API server of a given version would refuse
or drop, and warnings about what it accepts and costs users days. Nothing here reads files or talks to a cluster.
"""

from drakit.lint.engine import Report, Source, lint, target
from drakit.lint.findings import Finding, Severity
from drakit.lint.output import FORMATS
from drakit.lint.rules import RULES, Rule, Target

__all__ = ["FORMATS", "RULES", "Finding", "Report", "Rule", "Severity", "Source", "Target", "lint", "target"]
