"""The first questions of a process may come at once, from several threads."""

import os
import subprocess
import sys

PROGRAM = """
import sys, threading, time
from agentic_rag.config import Settings
from agentic_rag.models.chat import resolve_chat_model

settings = Settings(model="openai:x", base_url="http://127.0.0.1:1/v1")
failed = []

def choose(when):
    while when and when not in sys.modules:
        time.sleep(0.001)
    try:
        resolve_chat_model(settings)
    except Exception as error:
        failed.append(repr(error))

# Each begins while the first one is in the middle of importing the package.
parts = ["", "exceptions", "messages", "models", "profiles", "usage"]
begin = [f"pydantic_ai.{part}" if part else "" for part in parts]
threads = [threading.Thread(target=choose, args=(when,)) for when in begin]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed)
"""


def test_a_model_is_chosen_while_another_thread_imports_the_same_package() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "OPENAI_API_KEY": "none"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert ran.stdout.strip() == "[]"


SLEEPS = """
import os
from agentic_rag.models.embedder import resolve_embedder

embedder = resolve_embedder("local")
embedder.embed_query("warm")
assert "OMP_WAIT_POLICY" not in os.environ
before = os.times()
for number in range(10):
    embedder.embed_query(f"When was pump {number} replaced?")
after = os.times()
print((after.user - before.user) / (after.elapsed - before.elapsed))
"""


def test_the_embedding_engine_leaves_the_environment_as_it_was() -> None:
    environment = {name: value for name, value in os.environ.items() if name[:4] != "OMP_"}
    ran = subprocess.run(
        [sys.executable, "-c", SLEEPS],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    # Threads that sleep where they wait never use two processors whole.
    assert float(ran.stdout) < 1.9
