"""The documents agree with the code: every block runs, every link works.

Blocks of one page run in order and share their names, in an empty directory that holds the two
tables that `nkcme demo` leaves in ``demo/``. The markup of a page:

* a python block is executed; in a bash block every ``nkcme`` line is, by the same code as the
  command, and must end with status 0 or with the ``# exit status N`` written behind it;
* a text block after ``<!-- output -->`` is exactly what the block before it printed, and after
  ``<!-- output, numbers vary -->`` it is so except for numbers and the spaces between them.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main

import nkcme
from nkcme.cli.app import app, run
from nkcme.cli.demo import write_diabetes
from nkcme.estimators.nkcme import selection, training_defaults
from nkcme.kernels import KERNELS
from support.tiny_estimators import small_recipe

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md"))
}

#: First words of shell lines that are not run, and why; a line with another one fails the test.
NOT_RUN = {
    "make": "runs this very suite, or what tests/test_demo.py runs",
    "pip": "needs the network",
    "git": "needs the network",
    "source": "is for the reader's shell",
    "python": "runs a benchmark, for minutes",
    "curl": "asks a server",
}

#: The default trains ten members for thousands of steps. Here one network is trained shortly; on
#: the pages that show what the whole default does, a few are.
SHORT = small_recipe(least_rows=10**9)
#: Whether so short a training explains half of y is chance, so fixed atoms are always a candidate.
WHOLE = small_recipe(n_repeats=1, n_folds=2, surely_explained_small=1.0)
WHOLE_PAGES = ("docs/cli.md", "docs/default-model.md")

EXACT, VARYING = "<!-- output -->", "<!-- output, numbers vary -->"


@dataclass
class Block:
    """A fenced block: its language, its text, its first line in the page, the line above it."""

    language: str
    text: str
    line: int
    above: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    inside, above = None, ""
    for number, line in enumerate(lines, start=1):
        fence = line.lstrip().startswith("```")
        if fence and inside is None:
            inside = Block(line.strip().removeprefix("```"), "", number + 1, above)
        elif fence and inside is not None:
            found.append(inside)
            inside, above = None, ""
        elif inside is not None:
            inside.text += line + "\n"
        elif line.strip():
            above = line.strip()
    assert inside is None, f"{page}: the block of line {inside.line} is not closed"
    return found


def commands(text: str) -> list[str]:
    """The command lines of a bash block, continued ones joined."""
    joined = text.replace("\\\n", " ").splitlines()
    return [line.strip() for line in joined if line.strip() and not line.lstrip().startswith("#")]


def run_python(page: str, block: Block, names: dict) -> str:
    """Execute a block, its lines numbered as in the page, and give what it printed."""
    printed = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.text, page, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def run_shell(page: str, block: Block) -> str:
    """Run the nkcme lines of a block; what they printed, errors too, as if in /home/you."""
    printed = io.StringIO()
    for line in commands(block.text):
        command, _, note = line.partition("  # ")
        words = shlex.split(command)
        if words[0] in NOT_RUN or words[:2] == [
            "nkcme",
            "demo",
        ]:  # which tests/cli/test_demo.py runs
            continue
        if words[:2] == ["nkcme", "warm-up"]:  # which tests/cli/test_warm_up.py runs in small
            continue
        if words[:2] == ["nkcme", "serve"]:  # until it is stopped; tests/cli/test_serve.py runs it
            continue
        if words[:2] == ["nkcme", "explore"]:  # until it is stopped; tests/serving runs it
            continue
        if words[:3] == ["python", "-m", "benchmarks"]:  # which tests/benchmarks runs in small
            continue
        # The output of rl is on one page; tests/cli/test_rl.py runs the rest in small.
        if words[:2] == ["nkcme", "rl"] and page != "docs/cli.md":
            continue
        if words[:3] == ["nkcme", "data", "fetch"]:  # which tests/cli/test_data.py runs on loopback
            continue
        assert words[0] == "nkcme", f"{page}: no rule says how to run {line!r}"
        wanted = re.fullmatch(r"exit status (\d+)", note.strip())
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            status = run(words[1:])
        assert status == (int(wanted[1]) if wanted else 0), f"{page}: {line}\n{printed.getvalue()}"
    return printed.getvalue().replace(str(Path.cwd()), "/home/you")


def skeleton(text: str) -> str:
    """A text without its numbers, spaces and ruled lines."""
    return re.sub(r"\s|─|-{3,}", "", re.sub(r"-?\d[\d,]*\.?\d*(e[+-]?\d+)?", "#", text))


def check_output(page: str, block: Block, printed: str) -> None:
    assert "nan" not in printed.lower().split()
    where = f"{page}, line {block.line}: this was printed\n{printed}"
    if block.above == EXACT:
        assert [line.rstrip() for line in printed.strip().splitlines()] == [
            line.rstrip() for line in block.text.strip().splitlines()
        ], where
    else:
        assert skeleton(printed) == skeleton(block.text), where


@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_the_page_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = WHOLE if name in WHOLE_PAGES else SHORT
    monkeypatch.setattr(training_defaults, "DEFAULT", recipe)
    assert nkcme.NKCME()._recipe is recipe  # else every page trains the whole default
    # So short a training cannot compare candidates. The simplest is what the whole one keeps for
    # the table whose `nkcme info` is shown.
    monkeypatch.setattr(selection, "is_clearly_positive", lambda *gain, **of_rows: False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # as for a reader who is new
    monkeypatch.delenv("NKCME_DATA", raising=False)
    known_kernels = dict(KERNELS)
    names: dict = {"__name__": "page"}
    printed = ""
    try:
        for block in blocks(PAGES[name]):
            if block.language == "python":
                printed = run_python(name, block, names)
            elif block.language == "bash":
                if "demo/" in block.text and not Path("demo").exists():
                    write_diabetes(Path("demo"), seed=0)
                printed = run_shell(name, block)
            elif block.above in (EXACT, VARYING):
                check_output(name, block, printed)
    finally:
        KERNELS.clear()  # a page may add one of its own
        KERNELS.update(known_kernels)


@pytest.mark.parametrize("name", PAGES)
def test_no_block_escapes_by_its_language(name):
    """Only languages the tests know, so that no code is left out for being called "py"."""
    for block in blocks(PAGES[name]):
        assert block.language in {"python", "bash", "text", "json", "bibtex"}, block
        if block.above in (EXACT, VARYING):
            assert block.language == "text", block


def test_the_readme_starts_with_what_it_is_a_comparison_code_and_the_two_commands():
    lines = PAGES["README.md"].read_text(encoding="utf-8").splitlines()
    top = "\n".join(lines[:10])
    assert "distribution" in top
    assert "practitioners" in top
    assert "researchers" in top
    for method in ("NKCME()", "Treeffuser", "quantile-forest", "NGBoost"):
        assert method in top
    first, output, commands_block, *_ = blocks(PAGES["README.md"])
    assert len([line for line in first.text.splitlines() if line.strip()]) == 5
    assert "predict_interval" in first.text.splitlines()[-1]
    assert output.above == VARYING
    assert [line.split("#")[0].split() for line in commands_block.text.splitlines()] == [
        ["make", "demo"],
        ["make", "test"],
    ]


# ------------------------------------------------------------------------------------------- links


def without_blocks(text: str) -> str:
    return re.sub(r"`[^`\n]+`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and mkdocs give to headings of plain words."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("name", [*PAGES, "CHANGELOG.md"])
def test_links_and_pictures_lead_somewhere(name):
    page = ROOT / name
    text = without_blocks(page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(
        r'(?:src|href)="([^"]+)"', text
    ):
        if re.match(r"https?://|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name} links to {target}, which is not there"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{name} links to {target}: no such heading"


# -------------------------------------------------------------------------- pages that list things


def test_the_command_line_page_knows_every_command_and_option():
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    for name, command in typer.main.get_command(app).commands.items():
        section = re.search(rf"^## nkcme {name}$.*?(?=^## |\Z)", text, re.M | re.S)
        assert section, f"docs/cli.md has no section 'nkcme {name}'"
        below = getattr(command, "commands", {})  # of a group, as `nkcme data list`
        absent = [sub for sub in below if f"`nkcme {name} {sub}" not in section[0]]
        assert not absent, f"docs/cli.md, nkcme {name}: {absent}"
        parameters = [p for one in (command, *below.values()) for p in one.params]
        options = {o for p in parameters for o in p.opts if o.startswith("--")}
        missing = [option for option in options if f"`{option}" not in section[0]]
        assert not missing, f"docs/cli.md, nkcme {name}: {missing}"


def test_the_reference_has_every_public_name():
    text = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    documented = set(re.findall(r"^::: nkcme\.(\w+)$", text, re.M))
    assert set(nkcme.__all__) - {"__version__", "rl"} <= documented


# ------------------------------------------------------------------------------------ the web pages


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="mkdocs is an extra: pip install 'nkcme[docs]'")
    pytest.importorskip("material", reason="mkdocs-material is an extra: pip install 'nkcme[docs]'")
    pytest.importorskip("mkdocstrings", reason="an extra: pip install 'nkcme[docs]'")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return out


def test_the_site_builds_strictly_and_has_every_page(site):
    for page in DOCS.glob("*.md"):
        built = site / "index.html" if page.stem == "index" else site / page.stem / "index.html"
        assert built.exists()
    estimators = (site / "reference" / "estimators" / "index.html").read_text(encoding="utf-8")
    assert 'id="nkcme.NKCME.predict_interval"' in estimators


def test_the_site_needs_no_network(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", text):
            assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", tag), (
                f"{page.name}: {tag}"
            )
