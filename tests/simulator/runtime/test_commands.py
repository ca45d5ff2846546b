import pytest

from drakit.simulator.runtime import Outcome, outcome


@pytest.mark.parametrize(
    ("words", "seconds", "exit_code"),
    [
        (["sleep", "60"], 60, 0),
        (["sleep", "1m", "30s"], 90, 0),
        (["sleep", "0.5"], 0.5, 0),
        (["sh", "-c", "trap exit INT TERM; sleep 1m & wait"], 60, 0),
        (["/bin/sh", "-c", "sleep 2; sleep 3; exit 7"], 5, 7),
        (["bash", "-ec", "echo hello"], 0, 0),
        (["sh", "-c", "exit 300"], 0, 44),
        (["true"], 0, 0),
        (["/bin/false"], 0, 1),
        (["sh", "-c", "false"], 0, 1),
        (["env"], 0, 0),
        (["sleep", "infinity"], None, 0),
        (["sh", "-c", "while true; do sleep 1; done"], None, 0),
        (["tail", "-f", "/dev/null"], None, 0),
        (["nginx", "-g", "daemon off;"], None, 0),
        ([], None, 0),
    ],
)
def test_outcome(words: list[str], seconds: float | None, exit_code: int) -> None:
    assert outcome(words) == Outcome(seconds, exit_code)
