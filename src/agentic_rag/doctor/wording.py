"""An error as a check-up tells it: what is wrong, and what to do about it, apart."""

from agentic_rag.errors import AragError


def said(error: Exception) -> str:
    """An error's words on one line; of our own errors without what to do."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    text = " ".join(str(error).split()) or type(error).__name__
    return text.rpartition("; ")[0] or text if isinstance(error, AragError) else text


def cure_of(error: Exception, otherwise: str) -> str:
    """What to do, with which the message of each of our errors ends; else `otherwise`."""
    text = " ".join(str(error).split())
    if "Permission denied" in f"{text} {error.__cause__}":  # a backup would be no better
        return "Check who may read and write there."
    if not isinstance(error, AragError) or "; " not in text:
        return otherwise
    cure = text.rpartition("; ")[2]
    return cure[:1].upper() + cure[1:] if cure.split()[0].isalpha() else cure
