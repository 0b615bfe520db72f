"""`arag models`: the models that run on this machine."""

import typer

app = typer.Typer(help="The models that run on this machine.", no_args_is_help=True)


@app.command()
def fetch() -> None:
    """Fetch."""
