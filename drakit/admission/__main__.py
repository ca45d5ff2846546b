"""`python -m drakit.admission CASES.jsonl[.gz]`: answer recorded cases, one line each (see vectors/README.md)."""

from __future__ import annotations

import json
import sys

from drakit.admission import replay


def main(arguments: list[str]) -> int:
    """Print one answer a line; cases that act as a certain user are left out and counted on stderr."""
    if len(arguments) != 1:
        print("usage: python -m drakit.admission CASES.jsonl[.gz]", file=sys.stderr)
        return 2
    skipped = 0
    for case in replay.cases(arguments[0]):
        if case.get("user"):
            skipped += 1
        else:
            print(json.dumps(replay.answer_line(case), ensure_ascii=False))
    if skipped:
        print(f"skipped {skipped} cases that depend on a user's permissions", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
