"""A library is not there."""

import a_library_that_does_not_exist  # noqa: F401
