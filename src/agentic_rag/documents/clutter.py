"""Names that no reader means when a folder or an archive is indexed."""

_LEFT_OUT = frozenset(("node_modules", "__pycache__", "__MACOSX"))


def is_clutter(name: str) -> bool:
    """Whether a file or folder of that name is left out unless it is asked for."""
    return name.startswith(".") or name in _LEFT_OUT
