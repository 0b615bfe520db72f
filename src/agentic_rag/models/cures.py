"""What to do when a chat model fails: what depends on where it runs, as clauses."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cures:
    """`unreachable`: when nothing answers. `address`: `base_url` without a password, "" where it is
    not set. `log`: where the model's own account of a failure is to be read. `keyless`: no key is
    sent. `answer`: what to do about a reply that is none of a chat model's."""

    unreachable: str = "check the network"
    address: str = ""
    log: str = "the provider's status page"
    keyless: bool = False

    @property
    def answer(self) -> str:
        if self.address:
            return f"check that the server at `base_url` ({self.address}) is one of a chat model"
        return f"try again, and if it stays so look at {self.log}"


def at_base_url(address: str, *, keyless: bool) -> Cures:
    """Of a model behind `base_url`."""
    return Cures(
        unreachable=f"check `base_url` and that a server runs at {address}",
        address=address,
        log=f"the log of the server at `base_url` ({address})",
        keyless=keyless,
    )


def of_ollama(address: str) -> Cures:
    """Of a model of the Ollama at `address`."""
    return Cures(
        unreachable=f"Ollama is not running at {address}: start it with `ollama serve`",
        log="the log of Ollama",
    )


IN_PROCESS = Cures(
    unreachable="a model in this process needs the loopback interface 127.0.0.1: bring it up",
    log="the model file",
)
