#!/usr/bin/env python3
"""Writes what small networks of the zoo compute, by PyTorch: NAME.IN.npy and NAME.out.npy beside this file.

Weights are those that memplan gives them (`memplan export`); each network is written down from its authors' code in PyTorch's own
layers, so that it shares nothing with graphs/zoo. Usage: oracle.py MEMPLAN. Needs numpy, torch, onnx.
"""
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.numpy_helper
import torch
import torch.nn.functional as F

here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(7)


def ids(n, *shape):
    return rng.integers(0, n, shape, dtype=np.int64)


def real(*shape):
    return rng.standard_normal(shape).astype(np.float32)


class Weights:
    def __init__(self, memplan, spec):
        with tempfile.TemporaryDirectory() as d:
            subprocess.run([memplan, "export", spec, "--format", "onnx", "-o", d + "/m.onnx"], check=True,
                           stdout=subprocess.DEVNULL)
            model = onnx.load(d + "/m.onnx")
        self.of = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in model.graph.initializer}

    def __call__(self, name):
        return self.of[name]

    def linear(self, name, x):
        return F.linear(x, self(name + ".w"), self.of.get(name + ".b"))

    def norm(self, name, x, eps):
        w = self(name + ".scale")
        return F.layer_norm(x, w.shape, w, self(name + ".b"), eps)

    def rms(self, name, x, eps):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * self(name + ".scale")


def heads(x, n):
    b, s, f = x.shape
    return x.view(b, s, n, f // n).transpose(1, 2)


def merged(x):
    return x.transpose(1, 2).flatten(2)


def bert(w, ids, segments, padding):
    t = w("embed.word.w")[ids] + w("embed.segment.w")[segments] + w("embed.position.w")[:ids.shape[1]]
    x = w.norm("embed.norm", t, 1e-12)
    for i in (1, 2):
        p = f"layer{i}."
        q, k, v = (heads(w.linear(p + c, x), 3) for c in "qkv")
        a = merged(F.scaled_dot_product_attention(q, k, v, attn_mask=padding))
        x = w.norm(p + "norm1", x + w.linear(p + "out", a), 1e-12)
        x = w.norm(p + "norm2", x + w.linear(p + "fc2", F.gelu(w.linear(p + "fc1", x))), 1e-12)
    return w.linear("logits", torch.tanh(w.linear("pooler.fc", x[:, 0])))


def gpt(w, ids):
    x = w("word.w")[ids] + w("position.w")[:ids.shape[1]]
    for i in (0, 1):
        p = f"layer{i}."
        q, k, v = (heads(t, 3) for t in w.linear(p + "qkv", w.norm(p + "norm1", x, 1e-5)).chunk(3, -1))
        x = x + w.linear(p + "out", merged(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        x = x + w.linear(p + "fc2", F.gelu(w.linear(p + "fc1", w.norm(p + "norm2", x, 1e-5))))
    return (w.norm("norm", x, 1e-5) @ w("word.w").T).flatten(0, 1)


def t5_bucket(relative, both):
    n, base = 32, 0
    if both:
        n //= 2
        base = (relative > 0).long() * n
        relative = relative.abs()
    else:
        relative = -torch.min(relative, torch.zeros_like(relative))
    exact = n // 2
    far = exact + (torch.log(relative.float() / exact) / math.log(128 / exact) * (n - exact)).long()
    return base + torch.where(relative < exact, relative, torch.min(far, torch.full_like(far, n - 1)))


def t5_bias(w, name, n, both):
    at = torch.arange(n)
    return w(name + ".positions.w")[t5_bucket(at[None, :] - at[:, None], both)].permute(2, 0, 1)


def t5_attend(w, p, x, memory, bias):
    y = w.rms(p + "norm", x, 1e-6)
    memory = y if memory is None else memory
    q, k, v = (heads(w.linear(p + c, t), 3) for c, t in zip("qkv", (y, memory, memory)))
    scores = q @ k.transpose(-1, -2)
    return x + w.linear(p + "out", merged((scores if bias is None else scores + bias).softmax(-1) @ v))


def experts(w, p, x, topk, capacity):
    """One token after the other, as a queue at each expert's door; first choices of earlier tokens come first."""
    shape, x = x.shape, x.flatten(0, 1)
    share = (x @ w(p + "router.w").T).softmax(-1)
    n = share.shape[1]
    places = math.ceil(x.shape[0] * topk * capacity / 100 / n)
    taken, y = [0] * n, torch.zeros_like(x)
    for t in range(x.shape[0]):
        best, chosen = share[t].topk(topk)
        for s, e in zip(best, chosen.tolist()):
            if taken[e] < places:
                taken[e] += 1
                y[t] += s * (F.relu(x[t] @ w(p + "fc1.w")[e]) @ w(p + "fc2.w")[e])
    return y.view(shape)


def t5(w, source, answer, topk=0, capacity=0):
    stacks = []
    for name, tokens, both in (("encoder", source, True), ("decoder", answer, False)):
        x, n = w("word.w")[tokens], tokens.shape[1]
        bias = t5_bias(w, name, n, both)
        if not both:
            bias = bias.masked_fill(torch.ones(n, n).triu(1).bool(), -1e9)
        for i in (0, 1):
            p = f"{name}{i}."
            x = t5_attend(w, p + "self.", x, None, bias)
            if not both:
                x = t5_attend(w, p + "cross.", x, stacks[0], None)
            y = w.rms(p + "norm", x, 1e-6)
            if topk and i % 2:
                x = x + experts(w, p, y, topk, capacity)
            else:
                x = x + w.linear(p + "fc2", F.relu(w.linear(p + "fc1", y)))
        stacks.append(w.rms(name + ".norm", x, 1e-6))
    y = stacks[1]
    return (y * y.shape[-1] ** -0.5 @ w("word.w").T).flatten(0, 1)


def vit(w, data):
    x = F.conv2d(data, w("embed.patch.w"), w("embed.patch.b"), stride=8).flatten(2).transpose(1, 2)
    x = torch.cat([w("embed.class.w").expand(x.shape[0], -1, -1), x], 1) + w("embed.position.w")
    for i in (1, 2):
        p = f"layer{i}."
        y = w.norm(p + "norm1", x, 1e-6)
        q, k, v = (heads(w.linear(p + c, y), 3) for c in "qkv")
        x = x + w.linear(p + "out", merged(F.scaled_dot_product_attention(q, k, v)))
        x = x + w.linear(p + "fc2", F.gelu(w.linear(p + "fc1", w.norm(p + "norm2", x, 1e-6))))
    return w.linear("logits", w.norm("norm", x, 1e-6)[:, 0])


def swin_windows(x, m):
    b, h, _, c = x.shape
    return x.view(b, h // m, m, h // m, m, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, m * m, c)


def swin_layer(w, p, x, m, shift, n_heads):
    b, h, _, c = x.shape
    y = w.norm(p + "norm1", x, 1e-5)
    if shift:
        y = torch.roll(y, (-shift, -shift), (1, 2))
    y = swin_windows(y, m)
    q, k, v = w.linear(p + "qkv", y).view(-1, m * m, 3, n_heads, c // n_heads).permute(2, 0, 3, 1, 4)
    at = torch.stack(torch.meshgrid(torch.arange(m), torch.arange(m), indexing="ij")).flatten(1)
    far = (at[:, :, None] - at[:, None, :]) + m - 1
    bias = w(p + "distance.w")[far[0] * (2 * m - 1) + far[1]].permute(2, 0, 1)
    scores = (q * (c // n_heads) ** -0.5) @ k.transpose(-1, -2) + bias
    if shift:
        region, number = torch.zeros(1, h, h, 1), 0
        for rows in (slice(0, -m), slice(-m, -shift), slice(-shift, None)):
            for columns in (slice(0, -m), slice(-m, -shift), slice(-shift, None)):
                region[:, rows, columns] = number
                number += 1
        region = swin_windows(region, m).squeeze(-1)
        apart = (region[:, None, :] != region[:, :, None]).float() * -1e4
        scores = scores + apart.repeat(b, 1, 1)[:, None]
    y = w.linear(p + "out", (scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, m * m, c))
    y = y.view(b, h // m, h // m, m, m, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, h, c)
    if shift:
        y = torch.roll(y, (shift, shift), (1, 2))
    x = x + y
    return x + w.linear(p + "fc2", F.gelu(w.linear(p + "fc1", w.norm(p + "norm2", x, 1e-5))))


def swin(w, data):
    x = F.conv2d(data, w("patch.w"), w("patch.b"), stride=4).permute(0, 2, 3, 1)
    x = w.norm("patch.norm", x, 1e-5)
    for stage in range(1, 5):
        if stage > 1:
            x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
            x = w.linear(f"stage{stage}.reduced", w.norm(f"stage{stage}.norm", x, 1e-5))
        m = min(4, x.shape[1])
        for i in (0, 1):
            shift = m // 2 if i == 1 and x.shape[1] > m else 0
            x = swin_layer(w, f"stage{stage}.layer{i}.", x, m, shift, 2 << (stage - 1))
    return w.linear("logits", w.norm("norm", x, 1e-5).flatten(1, 2).mean(1))


def mamba(w, ids):
    x = w("word.w")[ids.T]  # [batch, seq, hidden]
    n = ids.shape[0]
    for i in (0, 1):
        p = f"layer{i}."
        u, z = w.linear(p + "in", w.rms(p + "norm", x, 1e-5)).chunk(2, -1)
        c = w(p + "conv.w")
        u = F.silu(F.conv1d(u.transpose(1, 2), c, w(p + "conv.b"), padding=3, groups=c.shape[0])[..., :n]).transpose(1, 2)
        a = -torch.exp(w(p + "a.log"))
        dt, b, c = torch.split(w.linear(p + "select", u), [1, a.shape[1], a.shape[1]], -1)
        dt = F.softplus(w.linear(p + "step.wide", dt))
        h, ys = torch.zeros(x.shape[0], *a.shape), []
        for t in range(n):
            h = torch.exp(dt[:, t, :, None] * a) * h + (dt[:, t] * u[:, t])[..., None] * b[:, t, None, :]
            ys.append((h * c[:, t, None, :]).sum(-1))
        y = (torch.stack(ys, 1) + u * w(p + "d")) * F.silu(z)
        x = x + w.linear(p + "out", y)
    return (w.rms("norm", x, 1e-5) @ w("word.w").T).transpose(0, 1).flatten(0, 1)


def unet(w, data, time):
    def conv(p, x, **more):
        return F.conv2d(x, w(p + ".w"), w(p + ".b"), **more)

    def active(p, x, groups=8):
        return F.silu(F.group_norm(x, groups, w(p + ".scale"), w(p + ".b"), 1e-6))

    def residual(p, x):
        y = conv(p + "conv1", active(p + "norm1", x), padding=1)
        y = y + w.linear(p + "time", t)[:, :, None, None]
        y = conv(p + "conv2", active(p + "norm2", y), padding=1)
        return y + (conv(p + "around", x) if p + "around.w" in w.of else x)

    def attend(p, x):
        y = F.group_norm(x, 8, w(p + "attend.norm.scale"), w(p + "attend.norm.b"), 1e-6)
        q, k, v = (conv(p + c, y).flatten(2).transpose(1, 2) for c in "qkv")
        return x + conv(p + "out", F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape))

    def block(p, x):
        x = residual(p, x)
        return attend(p, x) if p + "q.w" in w.of else x

    t = F.silu(w.linear("time.fc2", F.silu(w.linear("time.fc1", time))))
    x = conv("first", data, padding=1)
    kept = [x]
    for level in (0, 1, 2):
        x = block(f"down{level}_0.", x)
        kept.append(x)
        if level < 2:
            x = conv(f"down{level}.smaller", x, stride=2, padding=1)
            kept.append(x)
    x = residual("middle1.", attend("middle0.", residual("middle0.", x)))
    for level in (2, 1, 0):
        for i in (0, 1):
            x = block(f"up{level}_{i}.", torch.cat([x, kept.pop()], 1))
        if level:
            x = conv(f"up{level}.larger.conv", F.interpolate(x, scale_factor=2), padding=1)
    return conv("last", active("norm", x), padding=1)


def mcunet(w, data):
    def conv(p, x, clip=True, **more):
        x = F.conv2d(x, w(p + ".conv.w"), **more)
        x = F.batch_norm(x, w(p + ".bn.mean"), w(p + ".bn.var"), w(p + ".bn.scale"), w(p + ".bn.bias"), eps=1e-5)
        return F.relu6(x) if clip else x

    x = conv("stem", data, stride=2, padding=1)
    for i, s in enumerate((1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 2, 1, 1, 1), 1):
        p, y = f"block{i}.", x
        if p + "expand.conv.w" in w.of:
            y = conv(p + "expand", y)
        k = w(p + "depth.conv.w")
        y = conv(p + "depth", y, stride=s, padding=k.shape[-1] // 2, groups=k.shape[0])
        y = conv(p + "project", y, False)
        x = x + y if s == 1 and x.shape == y.shape else y
    return w.linear("fc", x.mean((2, 3))).softmax(-1)


tiny = "layers=2,hidden=12,heads=3,vocab=20"
rows = [
    ("bert", bert, f"bert:{tiny},seq=5,batch=2,classes=3",
     {"ids": ids(20, 2, 5), "segments": ids(2, 2, 5), "padding": real(2, 1, 1, 5)}),
    ("gpt", gpt, f"gpt:{tiny},seq=6,batch=2,cache=none", {"ids": ids(20, 2, 6)}),
    ("encoder_decoder", t5, f"encoder_decoder:{tiny},seq=40,answer=24",
     {"encoder.ids": ids(20, 1, 40), "decoder.ids": ids(20, 1, 24)}),
    ("moe", lambda w, a, b: t5(w, a, b, 1, 80), f"moe:{tiny},seq=7,answer=6,batch=2,experts=3,capacity=80",
     {"encoder.ids": ids(20, 2, 7), "decoder.ids": ids(20, 2, 6)}),
    ("moe2", lambda w, a, b: t5(w, a, b, 2, 70), f"moe:{tiny},seq=7,answer=6,experts=4,topk=2,capacity=70",
     {"encoder.ids": ids(20, 1, 7), "decoder.ids": ids(20, 1, 6)}),
    ("vit", vit, "vit:image=16,patch=8,layers=2,hidden=12,heads=3,classes=4,batch=2", {"data": real(2, 3, 16, 16)}),
    ("swin", swin, "swin:image=64,window=4,layers=2,hidden=4,heads=2,classes=3,batch=2", {"data": real(2, 3, 64, 64)}),
    ("mamba", mamba, "mamba:layers=2,hidden=6,state=3,vocab=20,seq=7,batch=2", {"ids": ids(20, 7, 2)}),
    ("unet", unet, "unet:image=8,channels=8,levels=3,blocks=1,batch=2", {"data": real(2, 3, 8, 8), "time": real(2, 8)}),
    ("mcunet", mcunet, "mcunet:image=32,classes=5,batch=2", {"data": real(2, 3, 32, 32)}),
]
table = []
for name, network, spec, inputs in rows:
    y = network(Weights(sys.argv[1], spec), *(torch.from_numpy(v) for v in inputs.values()))
    line = spec
    for key, v in inputs.items():
        np.save(f"{here}/{name}.{key}.npy", v)
        line += f" --input {key}=tests/data/zoo/{name}.{key}.npy"
    np.save(f"{here}/{name}.out.npy", y.contiguous().float().numpy())
    table.append(line + f" --expect 0=tests/data/zoo/{name}.out.npy\n")
with open(here + "/runs.txt", "w") as f:
    f.writelines(table)
