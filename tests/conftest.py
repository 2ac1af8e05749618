"""Hypothesis profiles, and which tests the everyday command leaves out so that it ends in minutes.

`dev` explores anew each time; `ci` always tries the same examples.
"""

import os
import re

import pytest
from hypothesis import settings

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=200)
_in_ci = os.environ.get("CI", "").lower() in ("1", "true")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if _in_ci else "dev"))

LONG = re.compile(
    r"""
    crash/test_kill_points .*::test_variant_gets .*\[(exclusive|upsert|structured|unique_only|naive|deferred
        |replace|ignore_rowcount|swallow|pruned|low_water|stock_first)-
    | crash/test_kills_under_load .*\[(upsert|stock_first|id_first|immediate-delete|group-wal)
    | crash/test_kills_under_load .*::test_half_of_them
    | explore/test_variants .*::test_verdict .*\[(deferred|structured|pruned|low_water|exclusive|stock_first)
    | explore/test_refusals .*::test_a_statement_that_is_retried_for_ever
    | explore/test_assertions .*::test_the_example_database
    | report/test_browser .*\[crash
    | explore/test_refusals .*\[by_(name|command|one_handle)
    | test_check .*::test_(a_receiver_that_cannot_be_stepped|threads_are_raced)
    | test_consumers .*sound\[Apart
    | test_audit_against_brute_force .*\[any_case-100\]
    | test_mixed .*\[.*Old
    | their_frameworks/.*(::test_an_example_is_killed|exploring\[OnAsyncSession)
    | test_race .*::test_variant_gets .*\[(?!naive|immediate|deferred|group|swallow).*-delete
    | test_race .*::test_patience
    | test_race .*::test_right_receiver .*-delete
    | zoo/test_members .*\[(transaction_again|lease_fenced|inbox_for_each|immediate\+moved_and_asked|moved_
        |commit_checked|one_at_a_time|forked_first|read_through|legacy_write_first|ignore_known|fine_key|retry_whole)
    | zoo/test_members .*::test_in_every .*\[(immediate\+|one_inbox|commit_refused|read_beside|do_update
        |retry_outside)
    | zoo/test_theirs .*right .*\[(in_a_savepoint|sum_read|with_a_cte|looks_outside|upsert_with)
    | zoo/test_bad_input .*-run\]
    | zoo/test_members .*::test_killed .*\[(script|raise_open)
    """,
    re.VERBOSE,
)
"""More of what others of their kind try already; `pytest -m long` runs them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them, before `-m` chooses."""
    for item in items:
        if LONG.search(item.nodeid):
            item.add_marker(pytest.mark.long)
