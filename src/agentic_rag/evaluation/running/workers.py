"""A bounded number of things at a time, begun in their order."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def each(
    items: Sequence[T],
    workers: int,
    do: Callable[[T], Awaitable[None]],
    *,
    ends: Callable[[], bool] = lambda: False,
) -> None:
    """`do` with each of `items`, at most `workers` at a time; once `ends()`, none is begun.

    What one raises ends the others, and is raised. Cancelling ends them all.
    """
    queue = iter(items)

    async def work() -> None:
        for item in queue:  # one iterator for all: each takes the next
            if ends():
                return
            await do(item)

    tasks = [asyncio.create_task(work()) for _ in range(min(workers, len(items)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
