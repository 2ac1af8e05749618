"""Hypothesis profiles: `dev` explores anew each time, `ci` always tries the same, larger set."""

import os

from hypothesis import settings

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=500)
_in_ci = os.environ.get("CI", "").lower() in ("1", "true")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if _in_ci else "dev"))
