"""Death at a chosen statement: kill a real process there, reopen, redeliver; `campaign` is the way in.

Unlike a race, nothing here is a matter of chance: each point is tried, in a fresh store and a fresh process.
"""
