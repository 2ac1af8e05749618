"""What a run ran on."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import version
from pathlib import Path


def environment(store: Path) -> dict[str, str | int | list[str]]:
    """Versions, machine, and the file system that holds the store."""
    db = sqlite3.connect(":memory:")
    try:
        options = [option for (option,) in db.execute("PRAGMA compile_options")]
    finally:
        db.close()
    return {
        "oncebench": version("oncebench"),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "sqlite": sqlite3.sqlite_version,
        "sqlite_compile_options": options,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        "file_system": _file_system(store),
    }


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _file_system(path: Path) -> str:
    """Its type, from the longest mount point that holds the path; "unknown" where there is no /proc."""
    found, best = "unknown", -1
    try:
        real = path.resolve()
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
            _, mount, kind, *_ = line.split(" ")
            point = Path(mount.replace("\\040", " "))
            if len(point.parts) > best and real.is_relative_to(point):
                found, best = kind, len(point.parts)
    except (OSError, ValueError):
        pass
    return found
