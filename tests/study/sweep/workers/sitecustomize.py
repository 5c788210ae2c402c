"""Python imports this at its start where this folder is on its path: Ray's workers then know the toy method too."""

from acf.methods import METHODS

METHODS["toy"] = "small_acf"
