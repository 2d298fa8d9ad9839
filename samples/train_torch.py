# SPDX-License-Identifier: Apache-2.0
"""The loop of train_mlp.c in PyTorch, marked with tacho.

    tacho-record --window steps:10-60 -- python3 samples/train_torch.py

Without PyTorch it reports that and exits with 0.
"""
import argparse
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.environ.get("TACHO_PY", ""), os.path.join(HERE, "..", "build"),
                os.path.join(HERE, "..", "collector", "python")]
import tacho  # noqa: E402

try:
    import torch
except ImportError:
    print("train_torch.py: PyTorch is not installed: skipped")
    sys.exit(0)

CLASSES = 3


def make_points(count, generator):
    """Returns three spirals that no line separates."""
    label = torch.arange(count) % CLASSES
    along = torch.rand(count, generator=generator)
    angle = (4.5 * along + label * (6.2831853 / CLASSES)
             + 0.12 * torch.randn(count, generator=generator))
    return torch.stack((along * torch.cos(angle), along * torch.sin(angle)), 1), label


def evaluate(model, points, labels):
    with tacho.phase("evaluation"), torch.no_grad():
        return (model(points).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slow", metavar="STEP:MS", default="-1:0")
    options = parser.parse_args()
    slow_step, slow_ms = (int(part) for part in options.slow.split(":"))

    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(options.seed)
    torch.manual_seed(options.seed)
    points, labels = make_points(3000, generator)
    held_out = points[:600].to(device), labels[:600].to(device)
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
        torch.nn.Linear(64, CLASSES)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    tacho.watch_gc()

    for step in range(options.steps):
        tacho.step()
        with tacho.phase("data"):
            rows = torch.randint(600, 3000, (options.batch,), generator=generator)
            batch = points[rows].to(device, non_blocking=True)
            wanted = labels[rows].to(device, non_blocking=True)
            if step == slow_step:
                time.sleep(slow_ms / 1000)
        with tacho.phase("forward"):
            loss = torch.nn.functional.cross_entropy(model(batch), wanted)
        with tacho.phase("backward"):
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
        with tacho.phase("optimizer"):
            optimizer.step()
        tacho.counter("loss", loss.item())
        tacho.counter("samples", options.batch)
        if (step + 1) % 50 == 0 or step + 1 == options.steps:
            print("step %5d  loss %.4f  accuracy %.3f"
                  % (step + 1, loss.item(), evaluate(model, *held_out)))
    tacho.epoch_end()


if __name__ == "__main__":
    main()
