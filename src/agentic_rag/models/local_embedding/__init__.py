"""The default embedder's model run by onnxruntime: see `encoder.py`."""
