"""The default embedder's model, run in 8 bits by onnxruntime: see `int8.py`."""
