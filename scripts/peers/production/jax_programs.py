#!/usr/bin/env python3
"""XLA's buffer assignments of JAX programs: inference, training, loops; for this CPU, or ahead of time for an H100.

  jax_programs.py FOLDER cpu|gpu      writes NAME-buffer-assignment.txt and NAME-live-range.txt; needs jax

For gpu no GPU is needed, but jax-cuda12-plugin, jax-cuda12-pjrt and nvidia-cuda-nvcc-cu12: the device is described (H100 below),
autotuning is off, and what wants cuDNN to choose an algorithm is named and left out.
"""

import glob
import os
import shutil
import sys
import tempfile

H100 = """gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
  block_dim_limit_z: 65535 memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84978434048 shared_memory_per_block_optin: 232448 cuda_compute_capability { major: 9 minor: 0 }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 }
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""

scratch = tempfile.mkdtemp()
GPU = sys.argv[2:] == ["gpu"]
os.environ["XLA_FLAGS"] = f"--xla_dump_to={scratch} --xla_dump_hlo_as_text"
if GPU:
    compiler = glob.glob(os.path.join(sys.prefix, "lib", "python*", "site-packages", "nvidia", "cuda_nvcc"))[0]
    os.environ["XLA_FLAGS"] += f" --xla_gpu_autotune_level=0 --xla_gpu_cuda_data_dir={compiler}"
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
    os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402


def device():
    from jax.experimental import topologies
    return jax.sharding.SingleDeviceSharding(topologies.get_topology_desc(platform="cuda", topology="1x1x1", target_config=H100).devices[0])


PLACE = device() if GPU else None


def arrays(*shapes):
    return [jax.ShapeDtypeStruct(shape, jnp.float32, sharding=PLACE) for shape in shapes]


def mlp(x, *weights):
    for w in weights:
        x = jax.nn.gelu(x @ w)
    return x


def conv(x, w, stride=1, groups=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)


def resnet(x, *weights):
    """A basic block for every two weights after the first."""
    x = jax.nn.relu(conv(x, weights[0], 2))
    for a, b in zip(weights[1::2], weights[2::2]):
        stride = 2 if a.shape[2] != a.shape[3] else 1
        y = conv(jax.nn.relu(conv(x, a, stride)), b)
        short = x if stride == 1 else jnp.pad(x[:, ::2, ::2], ((0, 0), (0, 0), (0, 0), (0, b.shape[3] - x.shape[3])))
        x = jax.nn.relu(y + short)
    return x.mean((1, 2))


def resnet_weights(width, depth):
    shapes, now = [(3, 3, 3, width)], width
    for stage in range(4):
        for _ in range(depth):
            shapes += [(3, 3, now, width << stage), (3, 3, width << stage, width << stage)]
            now = width << stage
    return shapes


def unet(x, *weights):
    half, kept = len(weights) // 2, []
    for w in weights[:half]:
        x = jax.nn.relu(conv(x, w))
        kept.append(x)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    for w in weights[half:]:
        x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
        x = jax.nn.relu(conv(jnp.concatenate([x, kept.pop()], -1), w))
    return x


def unet_weights(width, depth):
    ins = [3] + [width << i for i in range(depth)]
    down = [(3, 3, a, b) for a, b in zip(ins, ins[1:])]
    up = [(3, 3, (width << i) + (width << min(i + 1, depth - 1)), width << i) for i in reversed(range(depth))]
    return down + up


def norm(x):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def transformer(heads, causal):
    def run(x, *weights):
        n, d = x.shape[-2:]
        for qkv, out, up, down in zip(*[iter(weights)] * 4):
            q, k, v = [y.reshape(-1, n, heads, d // heads).swapaxes(1, 2) for y in jnp.split(norm(x) @ qkv, 3, -1)]
            score = q @ k.swapaxes(-1, -2) / (d / heads) ** 0.5
            if causal:
                score = jnp.where(jnp.tril(jnp.ones((n, n), bool)), score, -1e9)
            x = x + (jax.nn.softmax(score) @ v).swapaxes(1, 2).reshape(x.shape) @ out
            x = x + jax.nn.gelu(norm(x) @ up) @ down
        return norm(x)
    return run


def transformer_weights(d, layers):
    return [(d, 3 * d), (d, d), (d, 4 * d), (4 * d, d)] * layers


def lstm(xs, w, u):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(x @ w + h @ u, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    zero = jnp.zeros((xs.shape[1], u.shape[0]))
    return lax.scan(step, (zero, zero), xs)[1]


def seq2seq(xs, w, u, v, t, out):
    return lstm(lstm(xs, w, u)[::-1], v, t) @ out


def mixer(x, *weights):
    for a, b, c, d in zip(*[iter(weights)] * 4):
        x = x + (jax.nn.gelu(norm(x).swapaxes(1, 2) @ a) @ b).swapaxes(1, 2)
        x = x + jax.nn.gelu(norm(x) @ c) @ d
    return x


def deep_scan(x, ws):
    return lax.scan(lambda c, w: (c + jnp.tanh(norm(c) @ w), None), x, ws)[0]


def heat(x):
    return lax.fori_loop(0, 50, lambda _, u: u + 0.1 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u), x)


def newton(a, b):
    return lax.while_loop(lambda s: s[1] < 20, lambda s: (s[0] - 0.1 * (a.T @ (a @ s[0] - b)), s[1] + 1), (b[:128], 0))[0]


def programs():
    for n, d in [(64, 256), (128, 512), (32, 1024)]:
        yield f"mlp_{n}x{d}", mlp, arrays((n, d), *[(d, 2 * d), (2 * d, d)] * 3)
    for width, depth, size in [(16, 1, 64), (32, 2, 64), (64, 2, 112)]:
        yield f"resnet_{width}x{depth}", resnet, arrays((2, size, size, 3), *resnet_weights(width, depth))
    for width, depth, size in [(8, 3, 64), (16, 4, 96)]:
        yield f"unet_{width}x{depth}", unet, arrays((1, size, size, 3), *unet_weights(width, depth))
    for d, layers, n, causal in [(128, 2, 64, False), (256, 4, 128, True), (384, 6, 197, False), (256, 2, 512, True)]:
        yield f"transformer_{d}x{layers}_{n}", transformer(d // 64, causal), arrays((1, n, d), *transformer_weights(d, layers))
    for steps, n, d in [(16, 8, 128), (64, 16, 256)]:
        yield f"lstm_{steps}x{d}", lstm, arrays((steps, n, d), (d, 4 * d), (d, 4 * d))
    yield "seq2seq_32x128", seq2seq, arrays((32, 8, 128), (128, 512), (128, 512), (128, 512), (128, 512), (128, 1000))
    for layers in (2, 8):
        yield f"mixer_{layers}", mixer, arrays((4, 49, 128), *[(49, 64), (64, 49), (128, 512), (512, 128)] * layers)
    yield "deep_scan_24", deep_scan, arrays((32, 256), (24, 256, 256))


def others():
    """Programs without a gradient worth training."""
    yield "heat", heat, arrays((256, 256))
    yield "newton", newton, arrays((256, 128), (256,))
    yield "cholesky", lambda a: jnp.linalg.cholesky(a @ a.T + jnp.eye(96)), arrays((96, 96))
    yield "qr", lambda a: jnp.linalg.qr(a), arrays((64, 64))
    yield "svd", lambda a: jnp.linalg.svd(a)[1], arrays((48, 48))
    yield "fft", lambda a: jnp.abs(jnp.fft.fft2(a)), arrays((128, 128))
    yield "sort", lambda a: jnp.sort(a, axis=1) + jnp.cumsum(a, axis=0), arrays((256, 512))
    yield "plus_one", lambda a: a + 1, arrays((5,))


def training(net):
    def loss(weights, x):
        return (net(x, *weights) ** 2).mean()

    def step(x, *weights):
        value, slopes = jax.value_and_grad(loss)(weights, x)
        return value, [w - 0.01 * s for w, s in zip(weights, slopes)]
    return step


def dump(name, function, shapes, folder):
    for old in glob.glob(os.path.join(scratch, "*")):
        shutil.rmtree(old) if os.path.isdir(old) else os.remove(old)
    try:
        jax.jit(function).lower(*shapes).compile()
    except (jax.errors.JaxRuntimeError, NotImplementedError, ValueError) as error:
        print(f"{name}: {str(error).splitlines()[0][:200]}", file=sys.stderr, flush=True)
        return
    found = max(glob.glob(os.path.join(scratch, "*-buffer-assignment.txt")), key=os.path.getsize)
    for end in ("buffer-assignment.txt", "live-range.txt"):
        shutil.copy(found.replace("buffer-assignment.txt", end), os.path.join(folder, f"{name}-{end}"))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, net, shapes in programs():
        dump(name, net, shapes, folder)
        dump(f"{name}_train", training(net), shapes, folder)
        dump(f"{name}_grad_remat", jax.grad(lambda x, *w: (jax.checkpoint(net)(x, *w) ** 2).mean()), shapes, folder)
    for name, net, shapes in others():
        dump(name, net, shapes, folder)
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
