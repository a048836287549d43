"""Broken kernels, one fault a file, each named for it. `test_faults.py` runs them all and says what must come of each."""
