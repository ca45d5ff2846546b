"""Coverage-guided fuzzing of the front end and the evaluators (`make fuzz`)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap

import pytest

SECONDS = 60
TARGET = textwrap.dedent(
    """
    import sys
    import atheris

    with atheris.instrument_imports(include=["drakit.cel"]):
        from drakit import cel
        from drakit.cel.device import make_view

    ENVIRONMENT = cel.Environment()
    VIEW = make_view("d", {"attributes": {"s": {"string": "a"}, "i": {"int": 1}, "v": {"version": "1.0.0"},
                           "l": {"ints": [1, 2]}}, "capacity": {"m": {"value": "1Gi"}}})

    def target(data):
        text = data.decode("utf-8", "surrogatepass") if data[:1] != b"!" else data.decode("latin-1")
        try:
            program = ENVIRONMENT._compile(text[:300], "any")
        except cel.CompileError:
            return
        variables = [VIEW.as_map()]
        try:
            exact = repr(program.exact(variables))
        except cel.EvaluationError:
            return
        if program._run is not None:
            try:
                value = program._run(VIEW)
            except Exception:
                return
            assert repr(value) == exact, (text, value, exact)

    def guarded(data):
        try:
            target(data)
        except UnicodeDecodeError:
            pass

    atheris.Setup(sys.argv, guarded)
    atheris.Fuzz()
    """
)
SEEDS = [
    'device.attributes["d"].s == "a" && device.capacity["d"].m.compareTo(quantity("1Gi")) >= 0',
    "[1, 2].exists(x, x > 1) || cel.bind(a, device.attributes['d'], a.?s.orValue('') == 'b')",
    '{"a": 1}.?a.orValue(2) in [1u, 2] ? 1.5e3 : -9 % 2',
    "device.attributes['d'].l.transformMap(i, v, v + i).all(k, v, string(k).matches('^[0-9]+$'))",
    "timestamp('2024-01-01T00:00:00Z') - duration('1h') < timestamp(0) && b'\\xff'.size() == 1",
]


@pytest.mark.fuzz
@pytest.mark.timeout(SECONDS + 120)
def test_no_input_crashes_or_disagrees(tmp_path_factory: pytest.TempPathFactory) -> None:
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed: it has wheels for x86_64 and Python below 3.14 only")
    directory = tmp_path_factory.mktemp("fuzz")
    corpus = directory / "corpus"
    corpus.mkdir()
    for index, seed in enumerate(SEEDS):
        (corpus / str(index)).write_text(seed, encoding="utf-8")
    script = directory / "target.py"
    script.write_text(TARGET, encoding="utf-8")
    arguments = [f"-max_total_time={SECONDS}", "-max_len=300", "-timeout=20", "-rss_limit_mb=2048", str(corpus)]
    result = subprocess.run(
        [sys.executable, str(script), *arguments], cwd=directory, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
