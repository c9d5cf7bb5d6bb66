"""lpgemm in PyTorch: operators, a module in place of nn.Linear, and loading of quantised checkpoints.

    import lpgemm
    model = Model().to("cuda")                          # with nn.Linear
    lpgemm.load(model, "folder")                        # GPTQ, AWQ, compressed-tensors, ... or a container
    step = torch.compile(model, fullgraph=True)

Packed weights are a tensor of uint8, the bytes of a packed matrix, which state_dict and safetensors keep as any other.
torch.ops.lpgemm.matmul(x, weight, header, bias) is the product; header_of(weight) is the text that describes weights on
the host. An operator that fails raises RuntimeError with the library's sentence.
"""

import os

import torch

from ._header import describe, header_of

torch.ops.load_library(os.path.join(os.path.dirname(os.path.abspath(__file__)), "liblpgemm_torch.so"))

from . import _operators  # noqa: E402  (they must be there)
from ._linear import LpgemmLinear  # noqa: E402
from ._load import load  # noqa: E402

__all__ = ["LpgemmLinear", "describe", "header_of", "load"]
del _operators
