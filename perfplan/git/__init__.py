"""Git, seen from perfplan. Nothing outside of this package knows git.

Questions go through GitPython's command runner; commits go through the git program, so that hooks, signing and identity
are the user's.
"""

from perfplan.git.repository import Repository, SourceState, open_repository

__all__ = ["Repository", "SourceState", "open_repository"]
