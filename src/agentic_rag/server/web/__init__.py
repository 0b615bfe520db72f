"""The web page: one template, in English or Chinese, and the modules that make it work."""
