"""Programs that ExecuTorch's runtime executes under two memory plans: those of torch_programs.py, and some with state.

  cache               attention over a cache that the program keeps between its calls (planned with all else)
  prefill_and_decode  two methods over one such cache, which ExecuTorch places in a memory of its own (share_mutable_buffers)
  two_memories        tensors from 64 KiB on in a second memory
  branches            torch.cond: both branches lie in front of what surrounds them
"""

import torch
import torch_programs

WIDTH, HEADS, ROOM = 128, 4, 64


class Cache(torch.nn.Module):
    """Layers of attention with one cache each; `rows` tokens at the place that is given."""

    def __init__(self, layers=3):
        super().__init__()
        self.maps = torch.nn.ModuleList(torch.nn.Linear(WIDTH, 3 * WIDTH) for _ in range(layers))
        self.outs = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.Linear(4 * WIDTH, WIDTH))
                                        for _ in range(layers))
        for i in range(layers):
            self.register_buffer(f"keys{i}", torch.zeros(ROOM, WIDTH))
            self.register_buffer(f"values{i}", torch.zeros(ROOM, WIDTH))

    def forward(self, x, at):
        for i, (into, out) in enumerate(zip(self.maps, self.outs)):
            query, key, value = into(x).split(WIDTH, 1)
            keys, values = getattr(self, f"keys{i}"), getattr(self, f"values{i}")
            keys.index_copy_(0, at, key)
            values.index_copy_(0, at, value)
            split = [t.reshape(-1, HEADS, WIDTH // HEADS).transpose(0, 1) for t in (query, keys, values)]
            known = torch.arange(ROOM).unsqueeze(0) <= at.unsqueeze(1)
            scores = (split[0] @ split[1].transpose(1, 2)).masked_fill(~known, -1e9)
            x = x + out((scores.softmax(2) @ split[2]).transpose(0, 1).reshape(-1, WIDTH))
        return x


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.front, self.back = torch.nn.Linear(256, 512), torch.nn.Linear(512, 256)

    def forward(self, x):
        x = self.front(x)
        x = torch.cond(x.sum() > 0, lambda y: torch.relu(y) @ y.transpose(0, 1) @ y, lambda y: torch.sigmoid(y) * y - y, (x,))
        return self.back(x)


def tokens(first, n):
    return torch.randn(n, WIDTH), torch.arange(first, first + n)


def programs():
    """(name, {method: what makes its network, examples of inputs}, calls [method, inputs], options of MemoryPlanningPass)."""
    for name, make, shape in torch_programs.networks():
        x = torch.randn(shape)
        yield name, {"forward": (make, (x,))}, [("forward", (x,))], {}
    steps = [("forward", tokens(at, 1)) for at in range(5)]
    yield "cache", {"forward": (Cache, tokens(0, 1))}, steps, {}
    shared = Cache()
    steps = [("prefill", tokens(0, 16))] + [("decode", tokens(at, 1)) for at in range(16, 20)]
    yield "prefill_and_decode", {"prefill": (lambda: shared, tokens(0, 16)), "decode": (lambda: shared, tokens(0, 1))}, steps, {
        "share_mutable_buffers": True}
    x = torch.randn(1, 3, 96, 96)
    yield "two_memories", {"forward": (torch_programs.Autoencoder, (x,))}, [("forward", (x,))], {"second_memory_from": 1 << 16}
    xs = [torch.randn(64, 256) for _ in range(4)]
    yield "branches", {"forward": (Branches, (xs[0],))}, [("forward", (x,)) for x in xs], {}
