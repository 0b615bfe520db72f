"""Reports of runs: a page in HTML, Markdown, CSV, and two systems compared."""
