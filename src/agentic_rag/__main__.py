"""`python -m agentic_rag` is the command `arag`."""

from agentic_rag.cli import main

if __name__ == "__main__":
    main()
