"""Diets: which samples each epoch of a training holds."""

from __future__ import annotations

from dataclasses import dataclass

from lib.recipe.core import Recipe

__all__ = ["Diet"]


@dataclass(frozen=True, eq=False)
class Diet(Recipe):
    """Which members each epoch holds, by a ranking of them."""
