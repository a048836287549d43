"""The plan document: a pure function of the files in the repository."""

from perfplan.plan.document import (
    Chart,
    Document,
    Resolved,
    Stale,
    build_documents,
    check_documents,
    resolve_documents,
    write_documents,
)

__all__ = [
    "Chart",
    "Document",
    "Resolved",
    "Stale",
    "build_documents",
    "check_documents",
    "resolve_documents",
    "write_documents",
]
