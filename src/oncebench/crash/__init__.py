"""Death at a chosen statement: kill a real process there, reopen, redeliver.

Unlike a race, nothing here is a matter of chance: each point is tried, in a fresh store and a fresh process.
"""

from oncebench.crash.campaign import Crash, Killed, crash
from oncebench.crash.points import Point

__all__ = ["Crash", "Killed", "Point", "crash"]
