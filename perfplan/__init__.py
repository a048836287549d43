"""perfplan: the decision log of a GPU-kernel performance campaign, tied to git."""

__version__ = "0.1.0"
