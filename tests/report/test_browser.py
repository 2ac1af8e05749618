"""The page in a real browser: content, silence, no requests, accessibility, keyboard, widths, schemes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page

from oncebench.report import page as pages
from oncebench.results.files import load
from oncebench.results.forms import load_any
from oncebench.results.schema import Op, Proof
from report.browser import Heard, opened, started

pytestmark = pytest.mark.timeout(600)
IDS = [
    "<script>document.title='owned'</script>",
    "<img src=http://127.0.0.1:9/x onerror=alert(1)>",
    "\u202eright to left\u202c שלום مرحبا",
    "👩\u200d👩\u200d👧 😀",
    "long " + "x" * 10_000,
    "'\"></svg><style>*{}</style>",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Gone before other tests: while it is there, an event loop runs on the main thread."""
    yield from started()


@pytest.fixture(scope="session")
def files(saved: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of a run of each kind, and of one whose ids are hostile."""
    folder = tmp_path_factory.mktemp("pages")
    written = {kind: folder / f"{kind}.html" for kind in (*saved, "hostile")}
    for kind, place in saved.items():
        written[kind].write_bytes(pages.html([load_any(place)]))
    run = load(saved["race"])
    for variant in run.variants:
        variant.violations = [
            Proof(
                "double_apply",
                id,
                f"{id} came twice",
                [Op(0, id, 1, 0, 50, "applied"), Op(1, id, 1, 5, None, id)],
            )
            for id in IDS
        ]
    run.variants[0].name = run.command = IDS[0] + IDS[2] + IDS[4]
    written["hostile"].write_bytes(pages.html([run]))
    return written


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def findings(page: Page) -> list[str]:
    """What axe-core has against it."""
    found = Axe().run(page).response["violations"]
    return [f"{one['impact']} {one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")


@pytest.mark.parametrize("kind", ["race", "crash", "wire", "explore", "check", "sweep", "hostile"])
def test_every_kind_of_page_is_quiet_and_accessible(
    kind: str, browser: Browser, files: dict[str, Path]
) -> None:
    """No request, no complaint, nothing that axe-core finds, nothing wider than 360 or 1600."""
    page, heard = opened(browser, files[kind], script=True)
    unfold(page)
    assert (findings(page), overflow(page)) == ([], 0)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 800})
    assert overflow(page) == 0
    if kind in ("race", "explore"):  # these two have every colour that there is
        assert findings(page) == []
    assert heard == Heard()
    page.context.close()


def test_without_scripts_the_verdict_comes_first_and_proofs_unfold_by_keyboard(
    browser: Browser, files: dict[str, Path]
) -> None:
    """The first key leads to the verdict; Enter unfolds a proof; a drawing says what it shows."""
    page, _ = opened(browser, files["race"])
    assert page.locator("h1").inner_text() == "naive: broken, immediate: sound"
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "To the verdict"
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "naive"
    proofs = page.locator("details.evidence")
    assert proofs.nth(0).get_attribute("open") is not None
    assert proofs.nth(1).get_attribute("open") is None
    proofs.nth(1).locator("summary").focus()
    page.keyboard.press("Enter")
    assert proofs.nth(1).get_attribute("open") is not None
    bars = proofs.nth(0).locator("svg .op")
    rows = proofs.nth(0).locator("tbody tr")
    assert bars.count() == rows.count() >= 2
    answer = rows.nth(0).locator("td").nth(1).inner_text()
    assert answer in (bars.nth(0).locator("title").text_content() or "")
    page.context.close()


def test_light_and_dark_follow_the_reader(browser: Browser, files: dict[str, Path]) -> None:
    """By the scheme that the system prefers."""
    colours = []
    for scheme in ("light", "dark"):
        page, _ = opened(browser, files["race"], scheme=scheme)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.context.close()
    assert colours == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]


def test_hostile_ids_are_text(browser: Browser, files: dict[str, Path]) -> None:
    """They are there to read, and nothing of them is an element."""
    page, heard = opened(browser, files["hostile"], script=True)
    unfold(page)
    assert page.locator("script, img").count() == 0
    assert page.locator("style").count() == 1
    assert page.title().startswith("<script>")
    assert page.get_by_text("<img src=http://127.0.0.1:9/x onerror=a").count() > 0
    assert page.get_by_text("😀").count() > 0
    assert "\u202e" not in page.content()
    assert heard == Heard()
    page.context.close()


def test_a_page_that_asks_and_complains_is_heard(browser: Browser, tmp_path: Path) -> None:
    """What the tests above listen with is not deaf, and the page's own policy stops a script."""
    loud = tmp_path / "loud.html"
    loud.write_text(
        "<title>x</title><img src=missing.png><p style='width:3000px'>wide<script>fail()</script>"
    )
    page, heard = opened(browser, loud, script=True)
    assert heard.requests == [(tmp_path / "missing.png").as_uri()]
    assert heard.complaints
    assert overflow(page) > 0
    assert findings(page)
    page.context.close()
    policy = pages.html([]).decode().replace("</body>", "<script>document.title = 'owned'</script></body>")
    loud.write_text(policy)
    page, heard = opened(browser, loud, script=True)
    assert "owned" not in page.title()
    assert "Content Security Policy" in heard.complaints[0]
    page.context.close()
