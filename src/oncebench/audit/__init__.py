"""The judge: what it is given, the rules it goes by, what it says."""

from oncebench.audit.columns import Columns, encode, overlapped
from oncebench.audit.findings import MOST_EXAMPLES, Findings, Kind, Verdict, Violation
from oncebench.audit.rules import audit, audit_columns

__all__ = [
    "MOST_EXAMPLES",
    "Columns",
    "Findings",
    "Kind",
    "Verdict",
    "Violation",
    "audit",
    "audit_columns",
    "encode",
    "overlapped",
]
