"""Kernels that the experiments measure. A regular package, so that no installed one of this name comes first."""
