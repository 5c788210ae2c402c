"""The error a person can act on: it says what was expected, what was found and what to do."""


class AcfError(ValueError):
    """The command line prints it without a traceback; anything else that escapes is a bug."""
