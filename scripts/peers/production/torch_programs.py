#!/usr/bin/env python3
"""Plans of ExecuTorch and pools of PyTorch's Inductor, of networks of torchvision and two of our own.

  torch_programs.py executorch|inductor FOLDER      writes NAME.pte, or NAME.py; needs executorch or torch, and torchvision
"""

import os
import sys
import traceback

import torch
import torchvision

NETWORKS = """resnet18 resnet50 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large mnasnet0_5 mnasnet1_0 squeezenet1_0
  densenet121 efficientnet_b0 shufflenet_v2_x0_5 shufflenet_v2_x1_0 convnext_tiny vit_b_32 swin_t regnet_x_400mf regnet_y_400mf
  vgg11 alexnet googlenet inception_v3 wide_resnet50_2 resnext50_32x4d""".split()


class Transformer(torch.nn.Module):
    """Encoder layers, pre-norm; their shape says what they are like."""

    def __init__(self, width, layers, heads):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x):
        return self.layers(x)


class Autoencoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        down = [torch.nn.Sequential(torch.nn.Conv2d(3 if i == 0 else 8 << i, 16 << i, 3, 2, 1), torch.nn.ReLU()) for i in range(4)]
        up = [torch.nn.Sequential(torch.nn.ConvTranspose2d(16 << i, 3 if i == 0 else 8 << i, 4, 2, 1), torch.nn.ReLU()) for i in (3, 2, 1, 0)]
        self.net = torch.nn.Sequential(*down, *up)

    def forward(self, x):
        return self.net(x)


def networks():
    """(name, what makes the network, shape of its input)."""
    for name in NETWORKS:
        size = 299 if name == "inception_v3" else 224
        yield name, lambda name=name: torchvision.models.get_model(name, weights=None), (1, 3, size, size)
    for width, layers, heads, n in [(128, 2, 4, 64), (256, 4, 8, 128), (512, 6, 8, 32), (768, 2, 12, 256)]:
        yield f"transformer_{width}x{layers}_{n}", lambda w=width, k=layers, h=heads: Transformer(w, k, h), (1, n, width)
    yield "autoencoder", Autoencoder, (1, 3, 96, 96)


def executorch(name, make, shape, folder):
    from executorch.exir import to_edge

    program = to_edge(torch.export.export(make().eval(), (torch.randn(shape),))).to_executorch()
    with open(os.path.join(folder, f"{name}.pte"), "wb") as out:
        out.write(bytes(program.buffer))


class Saved(Exception):
    """The code is written; nothing needs to be compiled."""


def inductor(name, make, shape, folder):
    """Inference; Inductor plans no pools for training."""
    from functorch.compile import make_boxed_func
    from torch._inductor import compile_fx, config, graph

    config.memory_planning, config.fx_graph_cache = True, False
    codes = []

    def save(code):
        codes.append(code if isinstance(code, str) else code.value)
        raise Saved

    def inner(module, inputs, **options):
        try:
            compile_fx.compile_fx_inner(module, inputs, **options)
        except Exception as error:  # Saved, perhaps inside another
            if not codes:
                raise error
        return make_boxed_func(module.forward)

    graph.GraphLowering.save_output_code = staticmethod(save)
    net, x = make().eval(), torch.randn(shape)
    for pool in ("intermediates", "combined"):
        config.memory_pool = pool
        torch._dynamo.reset()
        codes.clear()
        with torch.no_grad():
            torch.compile(net, backend=lambda m, i: compile_fx.compile_fx(m, i, inner_compile=inner))(x)
        with open(os.path.join(folder, f"{name}_{pool}.py"), "w", encoding="utf-8") as out:
            out.write(codes[0])


def main():
    what, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for name, make, shape in networks():
        try:
            torch.manual_seed(1)
            globals()[what](name, make, shape, folder)
        except Exception:  # one network that a producer cannot take must not lose the others
            print(f"{what}: {name}: {traceback.format_exc().splitlines()[-1]}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
