"""`python -m agentic_rag` is the command `arag`."""

import os

if __name__ == "__main__":
    try:
        from agentic_rag.cli import main

        main()
    except KeyboardInterrupt:  # pressed before `main` could take care of it
        os._exit(130)
