"""oncebench: does a message that arrives twice, at the same moment, land exactly once?

The words are here; the rooms are modules of their own: ``oncebench.race`` runs,
``oncebench.audit`` judges, ``oncebench.results`` keeps. A receiver needs no more than `Conflict`.
"""

from oncebench.messages import BadInput, Conflict, Delivery, History, Operation, Outcome, State

__all__ = ["BadInput", "Conflict", "Delivery", "History", "Operation", "Outcome", "State"]
