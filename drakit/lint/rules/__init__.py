"""The warnings of lint, one rule each. Rules look at the whole input and assume nothing of its shape."""

from drakit.lint.rules import claims, expressions, mistakes, pods, slices, taintrules, versions
from drakit.lint.rules.rule import Hit, Rule, Target

__all__ = ["RULES", "Hit", "Rule", "Target"]

RULES: tuple[Rule, ...] = (
    *expressions.RULES,
    *mistakes.RULES,
    *claims.RULES,
    *slices.RULES,
    *taintrules.RULES,
    *pods.RULES,
    *versions.RULES,
)
