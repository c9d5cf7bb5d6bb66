"""A module in place of nn.Linear, whose weights are packed."""

import torch
from torch import nn

from .. import validate
from ._header import describe, header_of


class LpgemmLinear(nn.Module):
    """y = activation(x . W^T + bias) for packed weights, a tensor of uint8 (torch.ops.lpgemm.pack, .quantize, or of a
    checkpoint by lpgemm.load()). It is in state_dict() as "weight"; loading one takes the description from it, whatever
    was here before, so LpgemmLinear() can stand for weights that are yet to come. fast: lpgemm's level FAST.
    activation: none, relu, gelu, gelu_tanh or silu. Weights whose rows are pairs of a gate and an up (packed with
    paired=True, the gates first) give activation(gate) * up, half as many outputs as they have rows."""

    activation = "none"  # of a module that was pickled before there was one

    def __init__(self, weight=None, bias=None, fast=False, activation="none"):
        super().__init__()
        self.fast, self.activation = bool(fast), activation
        self.register_buffer("weight", None)
        self.register_parameter("bias", None)
        self.header = ""
        if weight is not None:
            self.set_weight(weight, bias)

    def set_weight(self, weight, bias=None):
        """Other weights. After a change of the tensor's content in place this must be called too."""
        header = header_of(weight)
        desc = describe(header)
        if bias is not None and tuple(bias.shape) != (desc["n"],):
            raise ValueError(f"bias is {tuple(bias.shape)}, and the weights have {desc['n']} rows")
        align = 256 if weight.is_cuda else 64
        self.weight = weight.contiguous() if weight.data_ptr() % align == 0 else weight.clone()
        self.bias = None if bias is None else nn.Parameter(bias.detach(), requires_grad=False)
        self.header = header
        self.in_features, self.out_features = desc["columns"], desc["outputs"]

    @classmethod
    def from_linear(cls, linear, type="u4", group_k=128, scale_type="f16", method="mse", fast=False, activation="none",
                    **zeros):
        """Quantises an nn.Linear. Integers without a sign get the zero in the middle, unless `zero` or `zero_type` say
        something else."""
        if type.startswith("u") and not zeros:
            zeros = {"zero": float(1 << int(type[1:]) - 1)}
        weight = torch.ops.lpgemm.quantize(linear.weight.detach(), type, group_k, scale_type, method, **zeros)
        return cls(weight, linear.bias, fast, activation)

    def forward(self, x):
        return torch.ops.lpgemm.matmul(x, self.weight, self.header, self.bias, self.fast, self.activation)

    def dequantize(self, dtype=torch.float32):
        """The weights as a matrix, each the exact value rounded once."""
        return torch.ops.lpgemm.dequantize(self.weight, self.header, dtype)

    def extra_repr(self):
        if not self.header:
            return "no weights yet"
        desc = describe(self.header)
        group = f"g{desc['group_k']}" if desc["group_k"] else "rows"
        activation = "" if self.activation == "none" else f", {self.activation}" + (" gates" if desc["rows"] else "")
        return (f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
                f"{desc['type']} {group} {desc['scale_type']}{activation}")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        weight, bias = state_dict.get(prefix + "weight"), state_dict.get(prefix + "bias")
        if weight is None:
            missing_keys.append(prefix + "weight")
            return
        here = self.weight.device if self.weight is not None else weight.device
        try:
            validate(weight.detach().cpu().contiguous())  # bytes of a file may be anything
            if local_metadata.get("assign_to_params_buffers", False):
                here = weight.device
            self.set_weight(weight.detach().to(here, copy=here == weight.device),
                            None if bias is None else bias.detach().to(here))
        except (RuntimeError, ValueError) as error:
            error_msgs.append(f"{prefix}weight: {error}")
