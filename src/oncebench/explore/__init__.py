"""One schedule at a time, exactly: unmodified receivers, stepped statement by statement.

`stepping` parks a worker before each statement, a crew (`greenlets`, `threads`, `processes`) moves one
worker at a time, `run` plays one schedule, `search` all of them, `strategies` some, `timeline` shows one.
Nothing here judges: the caller passes the judge in.
"""
