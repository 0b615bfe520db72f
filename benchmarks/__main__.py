"""Both benchmarks, one after the other: `python -m benchmarks`."""

from benchmarks import quality, retrieval

if __name__ == "__main__":
    quality.main()
    retrieval.main()
