"""Llama and Qwen as plain PyTorch: modules with the names of Hugging Face's checkpoints, a static cache of keys and
values, nothing of lpgemm. For decode.py and the tests."""

import json
import math
import os
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    vocab_size: int
    head_dim: int = 0  # 0: hidden_size / heads
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    attention_bias: bool = False
    qk_norm: bool = False
    tie_word_embeddings: bool = False
    joined: bool = False  # q, k and v, and gate and up, are one matrix each

    def __post_init__(self):
        self.head_dim = self.head_dim or self.hidden_size // self.num_attention_heads

    @classmethod
    def read(cls, folder):
        """Of a config.json."""
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as text:
            data = json.load(text)
        kind = data.get("model_type", "llama")
        if kind not in ("llama", "mistral", "qwen2", "qwen3") or data.get("rope_scaling"):
            raise ValueError(f"{folder}: a {kind} model with rope_scaling {data.get('rope_scaling')} is not built here")
        known = {key: data[key] for key in cls.__dataclass_fields__ if data.get(key) is not None}
        known.setdefault("num_key_value_heads", data["num_attention_heads"])
        known["attention_bias"] = data.get("attention_bias", kind == "qwen2")
        return cls(**known, qk_norm=kind == "qwen3")


SIZES = {
    "tiny": Config(64, 128, 2, 4, 2, 96),
    "llama2-7b": Config(4096, 11008, 32, 32, 32, 32000),
    "llama3-8b": Config(4096, 14336, 32, 32, 8, 128256, rope_theta=500000.0),
    "qwen2.5-7b": Config(3584, 18944, 28, 28, 4, 152064, rope_theta=1e6, attention_bias=True),
    "qwen2.5-14b": Config(5120, 13824, 48, 40, 8, 152064, rope_theta=1e6, attention_bias=True),
    "qwen2.5-32b": Config(5120, 27648, 64, 40, 8, 152064, rope_theta=1e6, attention_bias=True),
    "llama3-70b": Config(8192, 28672, 80, 64, 8, 128256, rope_theta=500000.0),
}


class Norm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight


def rotate(x, cos, sin):
    """x [batch][tokens][heads][head_dim], cos and sin [tokens][1][head_dim / 2]: halves of a head are pairs."""
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = c.num_attention_heads, c.num_key_value_heads, c.head_dim
        sizes = [heads * c.head_dim for heads in (self.heads, self.kv_heads, self.kv_heads)]
        if c.joined:
            self.qkv_proj, self.sizes = nn.Linear(c.hidden_size, sum(sizes), c.attention_bias), sizes
        else:
            self.q_proj, self.k_proj, self.v_proj = (nn.Linear(c.hidden_size, n, c.attention_bias) for n in sizes)
        self.o_proj = nn.Linear(sizes[0], c.hidden_size, False)
        self.q_norm, self.k_norm = ((Norm(c.head_dim, c.rms_norm_eps), Norm(c.head_dim, c.rms_norm_eps)) if c.qk_norm
                                    else (nn.Identity(), nn.Identity()))
        self.joined = c.joined

    def forward(self, x, cos, sin, mask, positions, keys, values):
        batch, tokens, _ = x.shape
        q, k, v = (self.qkv_proj(x).split(self.sizes, -1) if self.joined
                   else (self.q_proj(x), self.k_proj(x), self.v_proj(x)))
        q = rotate(self.q_norm(q.reshape(batch, tokens, self.heads, self.head_dim)), cos, sin)
        k = rotate(self.k_norm(k.reshape(batch, tokens, self.kv_heads, self.head_dim)), cos, sin)
        keys.index_copy_(2, positions, k.transpose(1, 2))
        values.index_copy_(2, positions, v.reshape(batch, tokens, self.kv_heads, self.head_dim).transpose(1, 2))
        shared = self.heads // self.kv_heads
        q = q.view(batch, tokens, self.kv_heads, shared, self.head_dim).permute(0, 2, 3, 1, 4)
        scores = q.reshape(batch, self.kv_heads, shared * tokens, self.head_dim) @ keys.transpose(-1, -2)
        scores = scores.view(batch, self.kv_heads, shared, tokens, -1).float() / math.sqrt(self.head_dim) + mask
        p = scores.softmax(-1).to(x.dtype).view(batch, self.kv_heads, shared * tokens, -1)
        y = (p @ values).view(batch, self.kv_heads, shared, tokens, self.head_dim).permute(0, 3, 1, 2, 4)
        return self.o_proj(y.reshape(batch, tokens, self.heads * self.head_dim))


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.joined = c.joined
        if c.joined:
            self.gate_up_proj = nn.Linear(c.hidden_size, 2 * c.intermediate_size, False)
        else:
            self.gate_proj = nn.Linear(c.hidden_size, c.intermediate_size, False)
            self.up_proj = nn.Linear(c.hidden_size, c.intermediate_size, False)
        self.down_proj = nn.Linear(c.intermediate_size, c.hidden_size, False)

    def forward(self, x):
        if not self.joined:
            return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        h = self.gate_up_proj(x)
        if h.shape[-1] != self.down_proj.in_features:  # not if the layer multiplies pairs by itself
            gate, up = h.chunk(2, -1)
            h = F.silu(gate) * up
        return self.down_proj(h)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm, self.self_attn = Norm(c.hidden_size, c.rms_norm_eps), Attention(c)
        self.post_attention_layernorm, self.mlp = Norm(c.hidden_size, c.rms_norm_eps), MLP(c)

    def forward(self, x, more, *where):
        """x + more comes in, and goes out in the same way: the next norm adds them as it reads them."""
        x = x + more
        x = x + self.self_attn(self.input_layernorm(x), *where)
        return x, self.mlp(self.post_attention_layernorm(x))


def most_likely(logits):
    """The first of the largest logits of each row, in two steps: a row alone would be the work of one block of a GPU."""
    parts = math.gcd(logits.shape[-1], 1024)
    largest, at = logits.unflatten(-1, (parts, -1)).max(-1)
    part = largest.argmax(-1, keepdim=True)
    return part * (logits.shape[-1] // parts) + at.gather(-1, part)


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.config = c
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.model.layers = nn.ModuleList(Layer(c) for _ in range(c.num_hidden_layers))
        self.model.norm = Norm(c.hidden_size, c.rms_norm_eps)
        self.lm_head = nn.Linear(c.hidden_size, c.vocab_size, False)
        if c.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def cache(self, batch, length):
        """Keys and values of every layer, [batch][kv_heads][length][head_dim], zeros."""
        like, c = self.model.norm.weight, self.config
        return [[like.new_zeros(batch, c.num_key_value_heads, length, c.head_dim) for _ in range(2)]
                for _ in range(c.num_hidden_layers)]

    def forward(self, tokens, positions, cache):
        """Logits of the last of tokens[batch][t], which are at positions[t]; earlier ones are in the cache."""
        c, length = self.config, cache[0][0].shape[2]
        even = torch.arange(0, c.head_dim, 2, device=tokens.device, dtype=torch.float32)
        angle = positions[:, None, None] * c.rope_theta ** (-even / c.head_dim)
        later = torch.arange(length, device=tokens.device) > positions[:, None]
        mask = torch.zeros(later.shape, device=tokens.device).masked_fill(later, -math.inf)
        x, cos, sin = self.model.embed_tokens(tokens), angle.cos(), angle.sin()
        more = torch.zeros_like(x)
        for layer, (keys, values) in zip(self.model.layers, cache):
            x, more = layer(x, more, cos, sin, mask, positions, keys, values)
        return self.lm_head(self.model.norm(x[:, -1] + more[:, -1]))
