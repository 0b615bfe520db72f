"""`arag ask`."""

import typer


def ask(ctx: typer.Context, question: str) -> None:
    """Ask."""
