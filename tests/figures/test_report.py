"""The whole report: what it says, what it writes, and that hostile input cannot spoil it."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import pytest
import result_folders

from figures import InputError, write_report
from figures.results import SECTIONS


class Outline(HTMLParser):
    """Collects tags, outside addresses and text of a page; complains about tags that do not match."""

    VOID = ("meta", "img", "br", "path")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self.addresses += [value or "" for key, value in attrs if key in ("src", "href")]
        assert not any(key.startswith("on") for key, _ in attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page_of(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def test_sound_report_says_holds_and_shows_every_part(sound_folder: Path) -> None:
    page = page_of(sound_folder)
    outline = Outline(page)
    assert "Verdict: holds" in page and "All 26 gating claims hold." in page
    assert "id='failures'" not in page and "Not available" not in page
    assert page.index("id='theorem'") < page.index("Verdict by kind of claim") < page.index("id='delays'")
    for name in SECTIONS:
        assert f"<section id='{name}'>" in page
    assert outline.tags.count("img") >= 8
    for stem in (
        "bound_terms",
        "quadratic_curves",
        "gap",
        "utilisation",
        "timeline_pipedream-2bw_s4_m4",
        "loss_curves",
        "waterfall",
        "window_losses",
    ):
        for end in ("pdf", "png", "csv"):
            assert (sound_folder / "figures" / f"{stem}.{end}").stat().st_size > 100, (stem, end)


def test_page_loads_nothing_from_outside(sound_folder: Path, hostile_folder: Path) -> None:
    for folder in (sound_folder, hostile_folder):
        outline = Outline(page_of(folder))
        assert "script" not in outline.tags and "link" not in outline.tags and "iframe" not in outline.tags
        for address in outline.addresses:
            assert address.startswith(("data:image/png;base64,", "#", "figures/", "./")), address
            if address.startswith("./"):
                assert ".." not in address


def test_hostile_names_are_text_and_failures_come_first(hostile_folder: Path) -> None:
    page = page_of(hostile_folder)
    assert "<script>" not in page
    assert "".join(Outline(page).text).count(result_folders.HOSTILE_NAME) > 5
    assert "Verdict: fails" in page and "state: interrupted" in page
    assert page.index("id='failures'") < page.index("id='theorem'")
    assert "1.0000000001" in page  # not rounded to its limit, 1
    assert "passwd'" not in page  # no link out of the folder
    assert "differ" in page and "not refuted" in page and "diverged or are missing" in page


def test_broken_formula_is_shown_as_text(tmp_path: Path) -> None:
    folder = result_folders.write(tmp_path)
    for name in ("delays", "quadratic", "training"):
        (folder / f"{name}.json").unlink()
    certified = json.loads((folder / "certified.json").read_text())
    certified["runs"][0]["theorem"]["latex"] = r"\input{/etc/passwd} <b>"
    certified["runs"][0]["theorem"]["terms"][2]["latex"] = r"\frac{1"
    result_folders.put(folder, "certified", {"runs": certified["runs"][:1]})
    write_report(folder)
    assert r"<code>\input{/etc/passwd} &lt;b&gt;</code>" in page_of(folder)


def test_status_alone_gives_an_unfinished_report(tmp_path: Path) -> None:
    result_folders.put(tmp_path, "status", result_folders.status(state="running"))
    (tmp_path / "delays.json").write_text('{"schedules": [', encoding="utf-8")
    (tmp_path / "quadratic.json").write_text("[1]", encoding="utf-8")
    result_folders.put(tmp_path, "certified", {})
    paths = write_report(tmp_path)
    page = page_of(tmp_path)
    Outline(page)
    assert paths[0].name == "report.html"
    assert "Unfinished result" in page and "state of the run: running" in page
    assert "delays.json cannot be read" in page and "quadratic.json cannot be read" in page
    assert "certified.json has nothing to show" in page and "there is no training.json" in page


@pytest.mark.parametrize("content", [None, "{", "[]", "null"])
def test_folder_without_status_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "status.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="status.json"):
        write_report(tmp_path)
    with pytest.raises(InputError, match="not a folder"):
        write_report(tmp_path / "absent")
    assert not (tmp_path / "report.html").exists()


def test_a_failed_gating_claim_beats_the_written_verdict(tmp_path: Path) -> None:
    folder = result_folders.write(tmp_path)
    content = result_folders.claims()
    content["claims"][3].update(outcome="missing")
    result_folders.put(folder, "claims", content)
    for name in SECTIONS:
        (folder / f"{name}.json").unlink()
    write_report(folder)
    assert "Unfinished result" in page_of(folder) and "1 gating claims are missing" in page_of(folder)
    content["claims"][4].update(outcome="fails")
    result_folders.put(folder, "claims", content)
    write_report(folder)
    assert "Verdict: fails" in page_of(folder) and "1 of 26 gating claims fails" in page_of(folder)


def test_same_input_same_bytes_and_user_settings_survive(tmp_path: Path) -> None:
    folder = result_folders.write(tmp_path)
    quadratic, delays = (json.loads((folder / f"{name}.json").read_text()) for name in ("quadratic", "delays"))
    result_folders.put(folder, "quadratic", {**quadratic, "settings": quadratic["settings"][:1]})
    result_folders.put(folder, "delays", {**delays, "timelines": delays["timelines"][:1]})
    (folder / "certified.json").unlink()
    first = {path: path.read_bytes() for path in write_report(folder)}
    with matplotlib.rc_context({"font.size": 31.0, "pdf.fonttype": 3, "axes.grid": False, "lines.linewidth": 9.0}):
        second = {path: path.read_bytes() for path in write_report(folder)}
        assert matplotlib.rcParams["font.size"] == 31.0 and matplotlib.rcParams["pdf.fonttype"] == 3
    assert first.keys() == second.keys()
    assert [path.name for path in first if first[path] != second[path]] == []


def test_figures_that_are_no_longer_drawn_disappear(tmp_path: Path) -> None:
    folder = result_folders.write(tmp_path)
    for name in ("delays", "quadratic", "certified", "empirics"):
        (folder / f"{name}.json").unlink()
    write_report(folder)
    (folder / "figures" / "mine.png").write_bytes(b"kept")
    (folder / "training.json").unlink()
    paths = write_report(folder)
    assert [path.name for path in (folder / "figures").iterdir()] == ["mine.png"]
    assert all(path.is_file() for path in paths)


def test_pdfs_have_no_type_3_fonts(sound_folder: Path, hostile_folder: Path) -> None:
    pdfs = [*sound_folder.glob("figures/*.pdf"), *hostile_folder.glob("figures/*.pdf")]
    assert len(pdfs) > 15
    for path in pdfs:
        content = path.read_bytes()
        assert b"/Type3" not in content, path.name
        assert b"/CIDFontType2" in content or b"/TrueType" in content, path.name
        assert b"CreationDate" not in content, path.name


def test_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "figures"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("error: folder") and len(done.stderr.splitlines()) == 1
    result_folders.put(tmp_path, "status", result_folders.status())
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == str(tmp_path / "report.html")


def test_importing_the_package_loads_no_matplotlib() -> None:
    code = "import figures, sys; print([m for m in ('matplotlib', 'numpy', 'theory', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_path_with_spaces_and_greek(tmp_path: Path) -> None:
    folder = tmp_path / "mein Ordner σ 😀"
    result_folders.put(folder, "status", result_folders.status())
    result_folders.put(folder, "claims", result_folders.claims())
    assert write_report(folder)[0].is_file()
