#!/usr/bin/env python3
"""Networks as exporters write them, by memplan and by ONNX Runtime: what loads, what is computed, what it takes.

  scripts/peers/models.py [--folder F] [NAME ..]      lines of scripts/peers/models.tsv (all)

Exports each network (random weights of one seed, a process each; F keeps the files), runs both on the same inputs, compares
each output (float32: 1e-3 relative, or of the largest magnitude; quantised: 5 % of it), and takes turns for times with one
thread: memplan's with `--layout auto` and with layouts by measured times (`tune`), which must compute the same; `-` where it
chooses none, or not in --tune-seconds. ONNX Runtime's products of bytes saturate at 16 bits where the processor has no VNNI:
outputs are those of its exact mode, and times too where its usual mode computes something else. Bytes: memplan's plan, with
workspaces beside it, and ONNX Runtime's arena and pattern as in ort.py. A network that cannot be exported here is listed with
the exporter's last words and counts for neither. Needs torch, torchvision, timm, transformers, diffusers, onnx, onnxscript, onnxruntime, numpy.
"""

import json
import math
import os
import subprocess
import sys
import tempfile

import common
import ort as ort_peer

HERE = os.path.dirname(os.path.abspath(__file__))
QUANTISED = 0.05  # by how much of the largest magnitude quantised outputs may differ
GRAPH = ["--backend", "cpu", "--threads", "1", "--optimise", "all", "--rnn", "ahead"]
RUN = ["--planner", "portfolio", *GRAPH]


def read_list():
    with open(os.path.join(HERE, "models.tsv"), encoding="utf-8") as lines:
        return [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")]


# ---- export: in a process of its own ----


def image(size):
    import torch

    return torch.rand(1, 3, size, size)


def from_torchvision(name, size="224", form=""):
    import torchvision

    place = torchvision.models
    *folders, last = name.split(".")
    for folder in folders:
        place = getattr(place, folder)
    model = getattr(place, last)(weights=None, **({"weights_backbone": None} if folders[:1] in (["segmentation"], ["detection"]) else {}))
    if form == "flow":
        return model, (image(int(size)), image(int(size)))
    if form == "boxes":
        return model, ([image(int(size))[0]],)
    if hasattr(model, "aux_logits"):
        model.aux_logits = False
    return model, (image(int(size)),)


def from_timm(name):
    import timm

    model = timm.create_model(name, pretrained=False, exportable=True)
    return model, (image(model.default_cfg["input_size"][-1]),)


def from_transformers(name, form=""):
    import torch
    import transformers

    family = name.removesuffix("Encoder")
    small = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 1000,
             "n_embd": 256, "n_layer": 4, "n_head": 4, "num_key_value_heads": 2, "head_dim": 64, "d_model": 256, "num_layers": 4,
             "num_heads": 4, "encoder_layers": 4, "encoder_attention_heads": 4, "embedding_size": 256, "ffn_dim": 512,
             "word_embed_proj_dim": 256, "dim": 256, "n_layers": 4, "n_heads": 4, "hidden_dim": 512}
    if form == "image":
        small = {"num_hidden_layers": 4} if family == "ViT" else {}
    config = getattr(transformers, f"{family}Config")()
    for key, value in small.items():
        if hasattr(config, key) and isinstance(getattr(config, key), int):
            setattr(config, key, value)
    config.use_cache = False
    config.return_dict = False
    model = getattr(transformers, f"{family}{'EncoderModel' if name == 'T5Encoder' else 'Model'}")(config)
    if name == "BartEncoder":
        model = model.encoder

    class First(torch.nn.Module):
        """The first result, from the model's main input alone."""

        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(**{model.main_input_name: x})[0]

    return First(), ((image(224),) if form == "image" else (torch.randint(0, 999, (1, 64)),))


def from_torch(name, form=""):
    import torch

    if name == "TransformerEncoderLayer":
        return torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True), (torch.rand(1, 64, 256),)
    return getattr(torch.nn, name)(128, 256, num_layers=2, bidirectional=form == "bidirectional"), (torch.rand(35, 1, 128),)


def from_diffusers(name):
    import diffusers
    import torch

    if name == "UNet2D":
        model = diffusers.UNet2DModel(sample_size=32, in_channels=3, out_channels=3, block_out_channels=(32, 64, 64), layers_per_block=1,
                                      down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
                                      up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"))
        inputs = (image(32), torch.tensor([7]))
    else:
        model = diffusers.AutoencoderKL(block_out_channels=(32, 64), down_block_types=("DownEncoderBlock2D",) * 2,
                                        up_block_types=("UpDecoderBlock2D",) * 2, layers_per_block=1).decoder
        inputs = (torch.rand(1, 4, 16, 16),)

    class First(torch.nn.Module):
        """The result as a tensor."""

        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *x):
            out = self.model(*x)
            return out.sample if hasattr(out, "sample") else out

    return First(), inputs


MAKERS = {"torchvision": from_torchvision, "timm": from_timm, "transformers": from_transformers, "diffusers": from_diffusers,
          "torch": from_torch}


def quantise(path, kind):
    import onnxruntime as ort
    from onnxruntime import quantization as q

    plain = path + ".plain.onnx"
    os.replace(path, plain)
    if kind == "dynamic":
        q.quantize_dynamic(plain, path)
        return

    class Reader(q.CalibrationDataReader):
        def __init__(self):
            session = ort.InferenceSession(plain, providers=["CPUExecutionProvider"])
            self.rest = [dict(ort_peer.feeds_of(session))]

        def get_next(self):
            return self.rest.pop() if self.rest else None

    q.quantize_static(plain, path, Reader(), quant_format=q.QuantFormat.QDQ)


def export(path, made, exporter, opset):
    """Writes the model; the last line tells nothing but that it went well."""
    import torch

    torch.manual_seed(1)
    maker, *words = made.split(" ")
    model, example = MAKERS[maker](*words)
    model.eval()
    form, *quantised = exporter.split("+")
    with torch.no_grad():
        torch.onnx.export(model, example, path, opset_version=int(opset), dynamo=form == "dynamo",
                          **({"external_data": False} if form == "dynamo" else {}))
    if quantised:
        quantise(path, quantised[0])
    print("{}")


# ---- ONNX Runtime: in a process of its own ----


def outputs(path, folder):
    """Writes inputs and ONNX Runtime's outputs; prints {"inputs": [[name, file]], "outputs": [[name, file, largest]], "exact":
    whether its outputs are other than these where its products of bytes may saturate}."""
    import numpy as np
    import onnxruntime as ort

    exact = ort.SessionOptions()
    exact.add_session_config_entry(*ort_peer.EXACT)
    session = ort.InferenceSession(path, exact, providers=["CPUExecutionProvider"])
    feeds = dict(ort_peer.feeds_of(session))
    said = {"inputs": [], "outputs": [], "exact": False}
    for i, (name, data) in enumerate(feeds.items()):
        np.save(os.path.join(folder, f"in{i}.npy"), data)
        said["inputs"].append([name, os.path.join(folder, f"in{i}.npy")])
    usual = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feeds)
    for i, (value, data) in enumerate(zip(session.get_outputs(), session.run(None, feeds))):
        np.save(os.path.join(folder, f"out{i}.npy"), data)
        largest = float(np.abs(data.astype(np.float64)).max()) if data.size else 0.0
        said["outputs"].append([value.name, os.path.join(folder, f"out{i}.npy"), largest])
        if data.size and float(np.abs(usual[i].astype(np.float64) - data).max()) > QUANTISED * largest:
            said["exact"] = True
    print(json.dumps(said))


def once(words):
    if words[0] == "export":
        export(*words[1:])
    elif words[0] == "outputs":
        outputs(*words[1:])
    else:
        ort_peer.measure(words[1], 1, "default", int(words[2]), exact=words[3:] == ["exact"])


# ---- one network ----


def tune(args, path, given, times):
    """Whether memplan can choose layouts of it, within that time: of graphs with loops or branches it does not."""
    if os.path.exists(times):
        os.remove(times)
    try:
        common.command([args.memplan, "tune", path, *GRAPH, *given, "--op-times", times, "--quiet"], timeout=args.tune_seconds)
    except subprocess.TimeoutExpired:
        return False
    except common.Failed as error:
        if "has blocks" not in str(error):
            raise
    return os.path.exists(times)


def runs_of(row):
    """Timed runs of a turn, of either side, after as many that warm up: a quarter of a second, at least as many as ort.py's."""
    return max(ort_peer.RUNS, min(50, int(0.25e9 / common.median(row["run_ns"]))))


def compare(name, made, exporter, opset, args, folder, scratch):
    path = os.path.join(folder, name + ".onnx")
    head = [name, exporter, opset]
    if not os.path.exists(path):
        try:
            common.itself(__file__, "export", path, made, exporter, opset)
        except (common.Failed, ValueError, IndexError) as error:
            common.say(f"models: {name}: not exported: {error}")
            return None
    told, _ = common.itself(__file__, "outputs", path, scratch)
    allowed = QUANTISED if "+" in exporter else 1e-3
    times = os.path.join(scratch, name + ".times.tsv")
    layouts = {"auto": ["--layout", "auto"], "tuned": ["--layout", "tuned", "--op-times", times]}
    given, expected = [], []
    for input_name, file in told["inputs"]:
        given += ["--input", f"{input_name}={file}"]
    for output, file, largest in told["outputs"]:
        expected += ["--expect", f"{output}={file}:{0 if '+' in exporter else allowed},{max(allowed * largest, 1e-6)}"]
    words = ["run", path, *RUN, *given]
    try:
        if not tune(args, path, given, times):
            del layouts["tuned"]
        rows = {layout: common.memplan(args.memplan, *words, *how, *expected) for layout, how in layouts.items()}
    except (common.Failed, ValueError) as error:
        common.say(f"models: {name}: {error}")
        return head + ["no" if "differ" not in str(error) else "other outputs", *["-"] * 12]
    runs = runs_of(rows["auto"])
    ours, theirs = {layout: [] for layout in layouts}, []
    for _ in range(args.rounds):
        for layout, how in layouts.items():
            timed = common.memplan(args.memplan, *words, *how, "--repeat", str(runs + ort_peer.WARM_UPS - 1))["run_ns"]
            ours[layout].append(common.median(timed[-runs:]))
        result, log = common.itself(__file__, "time", path, str(runs), "exact" if told["exact"] else "default")
        theirs.append(common.median(result["ns"]))
    arena, pattern = ort_peer.arena_bytes(log)
    row, least = rows["auto"], common.median(theirs)
    planned = row["planned_bytes"]
    taken = [common.median(ours[layout]) if layout in layouts else None for layout in ("auto", "tuned")]
    return head + ["yes", row["claim"], common.mib(planned), common.mib(common.with_workspaces(row)), common.mib(arena), common.ratio(planned, arena),
                   common.mib(pattern), common.mib(rows["tuned"]["planned_bytes"]) if "tuned" in rows else "-",
                   *[f"{t / 1e6:.2f}" if t else "-" for t in [*taken, least]], *[f"{t / least:.3f}" if t else "-" for t in taken]]


def summary(lines):
    done = [line for line in lines if line[3] == "yes"]
    arenas = [float(line[8]) for line in done if line[8] != "-"]
    common.say(f"models: {len(lines)} exported, {len(done)} equal; planned over arena at most {max(arenas, default=0):.3f}")
    for name, column in ("auto", -2), ("tuned", -1):
        times = [float(line[column]) for line in done if line[column] != "-"]
        common.say(f"models: time over ONNX Runtime's, layouts {name}: geometric mean "
                   f"{math.exp(sum(map(math.log, times)) / max(len(times), 1)):.3f}, most {max(times, default=0):.3f}")


def main():
    table = read_list()
    parser = common.options(__doc__.splitlines()[0], [line[0] for line in table], rounds=3)
    parser.add_argument("--tune-seconds", type=float, default=120, help="the most that measuring operations may take (120)")
    parser.add_argument("--folder", help="keeps the exported files, and takes those that lie there")
    args = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or scratch
        os.makedirs(folder, exist_ok=True)
        for name, *how in table:
            if name in args.cases:
                common.say(f"models: {name}")
                line = compare(name, *how, args, folder, scratch)
                lines += [line] if line else []
    summary(lines)
    heads = ["network", "exporter", "opset", "equal", "claim", "planned MiB", "with workspaces MiB", "arena MiB", "planned over arena",
             "pattern MiB", "tuned MiB", "~run ms", "~tuned ms", "~ORT ms", "~run over ORT", "~tuned over ORT"]
    common.write_table(common.table_path(args.output, "models"), heads, lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        once(sys.argv[2:])
    else:
        try:
            main()
        except common.Failed as error:
            sys.exit(f"models: {error}")
