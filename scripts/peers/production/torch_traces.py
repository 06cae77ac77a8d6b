#!/usr/bin/env python3
"""What PyTorch asks of its allocator: networks of torch_programs.py, inference and a step of training, as traces.

  torch_traces.py FOLDER      NAME.csv: time,event,id,bytes, as `memplan replay` reads them; needs torch and torchvision

The profiler's memory events on a CPU, by address, in order; what was there before the step (weights, inputs) is not among them.
PyTorch asks the same of its allocator on a GPU but for kernels' workspaces. Freed at the end is what was not freed before.
"""

import os
import sys

import torch
import torch_programs


def events(step):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=False) as seen:
        kept = step()
    del kept
    found = []

    def walk(event):
        if str(event.typed[0]).endswith("Allocation"):
            found.append((event.start_time_ns, event.typed[1].ptr, event.typed[1].alloc_size))
        for child in event.children:
            walk(child)

    for root in seen.profiler.kineto_results.experimental_event_tree():
        walk(root)
    return sorted(found, key=lambda e: e[0])


def trace(step, path):
    now, alive, lines = 0, {}, ["time,event,id,bytes"]
    for _, address, size in events(step):
        if size > 0:
            alive[address] = (f"t{now}", size)
            lines.append(f"{now},alloc,t{now},{size}")
        elif address in alive:
            name, size = alive.pop(address)
            lines.append(f"{now},free,{name},{size}")
        else:
            continue
        now += 1
    for name, size in alive.values():
        lines.append(f"{now},free,{name},{size}")
        now += 1
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    torch.set_num_threads(1)
    for name, make, shape in torch_programs.networks():
        torch.manual_seed(1)
        net, x = make(), torch.randn(2, *shape[1:])

        def inference():
            with torch.no_grad():
                return net(x)

        def training():
            found = net(x)
            (getattr(found, "logits", found) ** 2).mean().backward()

        for kind, step in (("infer", inference), ("train", training)):
            net.train(kind == "train")
            try:
                trace(step, os.path.join(folder, f"{name}_{kind}.csv"))
            except Exception as error:  # one network must not lose the others
                print(f"trace: {name}_{kind}: {str(error)[:200]}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
