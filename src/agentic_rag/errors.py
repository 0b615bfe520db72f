"""Errors a caller may handle; every message is one sentence that ends in what to do."""


class AragError(Exception):
    """Root of every error this package raises on purpose.

    The command line prints the message as it is and never a traceback, so a message names
    what was wrong and what to do about it.
    """
