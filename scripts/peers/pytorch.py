#!/usr/bin/env python3
"""PyTorch on a CPU beside memplan: the most bytes alive at once in an eager run, by PyTorch's profiler.

  scripts/peers/pytorch.py [NAME ..]      networks that torchvision and memplan's zoo both have

Inference (batch 1) and a training step with SGD (batch 4): what the CPU allocator holds at most above what it held before the
run (weights), from the profiler's allocations one after the other. These are what operations ask PyTorch's allocator for:
results, and what a convolution reorders for itself (its input, its filter), each time; memplan's arena is of values alone, so a
column adds its workspaces, and another has the weights that it packs once. Resident sets are of whole processes, peak, with their libraries,
Python and the weights; memplan's ran the network with nothing shared as well, to compare outputs. Networks of one name differ in details between torchvision
and the zoo (results/APPENDIX.md says where). Needs torch and torchvision.
"""

import json
import sys
import time

import common

RUNS = 5
NAMES = {"resnet18": {}, "resnet50": {}, "densenet121": {}, "vgg16": {}, "mobilenet_v2": {}, "inception_v3": {"pictures": 299},
         "squeezenet": {"there": "squeezenet1_0"}, "shufflenet_v2": {"there": "shufflenet_v2_x1_0"}}


def most_alive(profile):
    """The most bytes allocated and not yet freed, above the start, over the profiler's events in order of time."""
    events = []
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            events.append((event.start_ns(), event.nbytes()))
    live = most = 0
    for _, change in sorted(events, key=lambda e: e[0]):
        live += change
        most = max(most, live)
    if not events:
        raise common.Failed("torch: its profiler names no allocation")
    return most


def measure(name, mode, threads):
    """Prints {"bytes", "resident", "ns": [..]}."""
    import torch
    import torchvision
    from torch.profiler import ProfilerActivity, profile

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    how = NAMES[name]
    train = mode == "train"
    more = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    net = getattr(torchvision.models, how.get("there", name))(weights=None, **more).train(train)
    side = how.get("pictures", 224)
    batch = torch.rand(4 if train else 1, 3, side, side)
    wanted = torch.zeros(batch.shape[0], dtype=torch.long)
    update = torch.optim.SGD(net.parameters(), lr=0.01)

    def run():
        if not train:
            with torch.inference_mode():
                net(batch)
            return
        update.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(net(batch), wanted).backward()
        update.step()

    run()
    held = common.resident()  # before the profiler takes memory of its own
    if train:
        update.zero_grad(set_to_none=True)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - start)
    print(json.dumps({"bytes": most_alive(seen), "resident": held, "ns": times}))


def compare(program, name, rounds):
    side = NAMES[name].get("pictures", 224)
    theirs_run, ours_run = [], []
    for _ in range(rounds):
        row = common.memplan(program, "run", name, "--backend", "cpu", "--threads", "1", "--repeat", str(RUNS))
        peer, _ = common.itself(__file__, name, "infer", "1")
        ours_run.append(common.median(row["run_ns"]))
        theirs_run.append(common.median(peer["ns"]))
    graph = f"{name}:mode=train,update=sgd,batch=4"
    training = common.memplan(program, "plan", graph)
    peer_training, _ = common.itself(__file__, name, "train", "2")
    a, b = common.median(ours_run), common.median(theirs_run)
    return [name, side, common.mib(row["planned_bytes"]), common.mib(peer["bytes"]),
            common.ratio(row["planned_bytes"], peer["bytes"]), common.mib(common.with_workspaces(row)),
            common.ratio(common.with_workspaces(row), peer["bytes"]), common.mib(common.packed(row)),
            common.mib(row["rss_bytes"]), common.mib(peer["resident"]), common.mib(training["planned_bytes"]),
            common.mib(peer_training["bytes"]), common.ratio(training["planned_bytes"], peer_training["bytes"]),
            f"{a / 1e6:.1f}", f"{b / 1e6:.1f}", common.ratio(a, b)]


def main():
    parser = common.options(__doc__.splitlines()[0], list(NAMES), rounds=3)
    args = parser.parse_args()
    lines = []
    for name in args.cases:
        if name not in NAMES:
            raise common.Failed(f"no network '{name}': {', '.join(NAMES)}")
        common.say(f"pytorch: {name}")
        lines.append(compare(args.memplan, name, args.rounds))
    heads = ["graph", "pictures", "planned MiB", "PyTorch MiB", "planned over PyTorch", "with workspaces MiB",
             "with workspaces over PyTorch", "packed weights MiB", "resident MiB", "PyTorch resident MiB", "training planned MiB", "training PyTorch MiB", "training planned over PyTorch", "~run ms", "~PyTorch ms", "~run over PyTorch"]
    common.write_table(common.table_path(args.output, "pytorch"), heads, lines)


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["--one"]:
            measure(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        else:
            main()
    except common.Failed as error:
        sys.exit(f"pytorch: {error}")
