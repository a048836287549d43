"""What `init` and `new` write: files from templates, never over a file that exists."""

from perfplan.scaffold.files import init_repository, new_spec

__all__ = ["init_repository", "new_spec"]
