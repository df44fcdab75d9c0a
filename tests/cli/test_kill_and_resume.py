"""One kill of tests/support/kill_and_resume.py, which can be run with many."""

import subprocess
import sys
from pathlib import Path


def test_a_killed_fit_resumes_to_the_same_bits():
    script = Path(__file__).parents[1] / "support" / "kill_and_resume.py"
    command = [sys.executable, str(script), "--kills", "1", "--seed", "3", "--warm"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 kills over" in result.stdout
