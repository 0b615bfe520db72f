"""The encoder of multilingual-e5-small (BERT, arXiv 1810.04805) as an ONNX model of 8 bits.

Inputs: `embedded`, the summed embeddings of the tokens of some texts padded to one length, shape
(tokens, width); `shape`, the numbers (texts, length, width); `lengths`, the tokens of each text.
Output: `encoded`, the last layer's state of each token, shape (tokens, width).

Each weight matrix is rounded once, by column; what is multiplied with it is rounded at run time,
by row, that is by token: a text gets the same vector whatever stands beside it in a batch, and one
token of large values does not cost the others their precision.
"""

import numpy as np

from agentic_rag.models.local_embedding.onnx_file import MICROSOFT, constant, model, node, value
from agentic_rag.models.local_embedding.weights import Floats, ModelFile, as_floats

_LARGEST_INPUT = 127
# Not 127: AVX2 adds two products in 16 bits, and 2 * 255 * 64 is what these hold.
_LARGEST_WEIGHT = 64
_ZERO = 128  # the inputs are unsigned: zero is in the middle


def encoder(weights: ModelFile) -> bytes:
    """The model as the bytes of an ONNX file."""
    return Graph(weights).written()


class Graph:
    """Nodes and constants as they are added; methods give the name of their result."""

    def __init__(self, weights: ModelFile) -> None:
        self.weights = weights
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def written(self) -> bytes:
        width = self.weights.width
        self.constant("1 / largest", np.float32(1 / _LARGEST_INPUT))
        self.constant("tiny", np.float32(1e-30))
        self.constant("last axis", np.array([-1]))
        self.constant("one", np.float32(1))
        self.constant("zero", np.uint8(_ZERO))
        self.constant("flat", np.array([-1, width]))
        state = self._normalised("embedded", "emb.ln")
        for number in range(self.weights.layers):
            state = self._layer(f"l{number}.", state)
        self.add("Identity", [state], "encoded")
        inputs = [
            value("embedded", "float32", ["tokens", width]),
            value("shape", "int64", [3]),
            value("lengths", "int32", ["texts"]),
        ]
        output = value("encoded", "float32", ["tokens", width])
        return model(self._nodes, self._constants, inputs, output)

    def _layer(self, layer: str, state: str) -> str:
        width = self.weights.width
        rounded = self.rounded(state)
        by_text = [
            self.add("Reshape", [self.product(rounded, f"{layer}{name}.w", width), "shape"])
            for name in ("q", "k", "v")
        ]
        biases = [self.weights.floats(f"{layer}{name}.b") for name in ("q", "k", "v")]
        self.constant(f"{layer}qkv.b", np.concatenate(biases))
        attended = self.add(
            "MultiHeadAttention",
            [*by_text, f"{layer}qkv.b", "lengths"],
            domain=MICROSOFT,
            num_heads=self.weights.heads,
        )
        attended = self.add("Reshape", [attended, "flat"])
        out = self._dense(self.rounded(attended), f"{layer}ao", width)
        state = self._normalised(self.add("Add", [state, out]), f"{layer}aln")
        inner = self._dense(self.rounded(state), f"{layer}fi", width)
        inner = self.add("Gelu", [inner], domain=MICROSOFT)
        inner_width = len(self.weights.floats(f"{layer}fi.b"))
        out = self._dense(self.rounded(inner), f"{layer}fo", inner_width)
        return self._normalised(self.add("Add", [state, out]), f"{layer}oln")

    def rounded(self, state: str) -> tuple[str, str]:
        """The rows in 8 bits, and the scale of each."""
        largest = self.add("ReduceMax", [self.add("Abs", [state]), "last axis"], keepdims=0)
        scale = self.add("Mul", [largest, "1 / largest"])
        scale = self.add("Max", [scale, "tiny"])  # a row of zeros
        zeros = self.add("Expand", ["zero", self.add("Shape", [scale])])
        rounded = self.add("QuantizeLinear", [state, scale, zeros], axis=0)
        return rounded, self.add("Unsqueeze", [scale, "last axis"])

    def product(self, rounded: tuple[str, str], name: str, columns: int) -> str:
        rows, row_scale = rounded
        matrix = as_floats(self.weights.blocks(name, columns))
        scale = np.abs(matrix).max(axis=1) / _LARGEST_WEIGHT
        self.constant(name, np.rint(matrix / scale[:, None]).astype(np.int8).T)
        self.constant(f"{name} scale", scale)
        product = self.add(
            "MatMulIntegerToFloat",
            [rows, name, "one", f"{name} scale", "zero"],
            domain=MICROSOFT,
        )
        return self.add("Mul", [product, row_scale])

    def _dense(self, rounded: tuple[str, str], name: str, columns: int) -> str:
        return self.add(
            "Add", [self.product(rounded, f"{name}.w", columns), self.floats(f"{name}.b")]
        )

    def _normalised(self, state: str, name: str) -> str:
        scale, bias = self.floats(f"{name}.w"), self.floats(f"{name}.b")
        epsilon = self.weights.epsilon
        return self.add("LayerNormalization", [state, scale, bias], axis=-1, epsilon=epsilon)

    def floats(self, name: str) -> str:
        return self.constant(name, self.weights.floats(name))

    def constant(self, name: str, values: Floats | np.generic | np.ndarray) -> str:
        self._constants.append(constant(name, np.asarray(values)))
        return name

    def add(
        self,
        operator: str,
        inputs: list[str],
        output: str = "",
        domain: str = "",
        **attributes: int | float,
    ) -> str:
        output = output or f"{operator} {len(self._nodes)}"
        self._nodes.append(node(operator, inputs, output, domain, **attributes))
        return output
