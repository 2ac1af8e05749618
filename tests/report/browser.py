"""Debian's Chromium, driven by playwright, and what it hears of a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

INSTALL = "apt-get update && apt-get install -y --no-install-recommends chromium"
PATIENCE = 120_000.0
"""Milliseconds that a browser on a busy machine may take for anything."""
_FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
]  # fmt: skip


@dataclass
class Heard:
    """What a page asked for and complained of while it was open."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


def started() -> Iterator[Browser]:
    """One browser with a profile of its own; without Chromium skipped, in CI failed."""
    program = shutil.which("chromium")
    if program is None:
        reason = f"Chromium is not installed: {INSTALL}"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_FLAGS, timeout=PATIENCE)
        yield browser
        browser.close()


def opened(
    browser: Browser,
    file: Path,
    width: int = 1600,
    scheme: Literal["light", "dark"] = "light",
    script: bool = False,
) -> tuple[Page, Heard]:
    """A page of a new context, from disk; `script` is for axe, which is one."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    heard = Heard()
    page.on("request", lambda request: heard.requests.append(request.url))
    page.on("console", lambda message: heard.complaints.append(message.text))
    page.on("pageerror", lambda error: heard.complaints.append(str(error)))
    page.goto(file.as_uri())
    heard.requests.remove(file.as_uri())
    return page, heard
