"""The one error that is the user's to mend; the command line prints it and exits with 2."""


class BadInput(ValueError):
    """Input that cannot be used. The message says what was wrong and what would have worked."""
