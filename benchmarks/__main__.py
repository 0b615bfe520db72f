"""The benchmarks, one after the other: `python -m benchmarks`."""

from benchmarks import many_files, quality, retrieval

if __name__ == "__main__":
    quality.main()
    retrieval.main()
    many_files.main()
