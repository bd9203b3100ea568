#!/usr/bin/env python3
"""Measures whole commands of Proctor against the real Matheel, on the same generated data, in one run. Standard library only.

usage: compare.py [--work DIRECTORY] [--proctor FILE] [--matheel FILE] [--only WORD] [--repeat N] [--small]

Needs `cargo build --release` and scripts/python-venv; benches/README.md has the commands. Each step is run --repeat times by both
sides in turn and the best of each counts. CPU is user plus system time of the command and everything it started, so it does not
depend on what else the machine does or on how many cores were used; it is the figure to compare per core.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


class Cost:
    """What a command cost: wall seconds, CPU seconds, and the peak resident memory of the command itself, in MiB."""

    def __init__(self, command):
        started = time.monotonic()
        log = open(os.path.join(CHOSEN.work, "last-command.log"), "w+b")
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.peak = 0
        watcher = threading.Thread(target=self._watch, args=(child.pid,), daemon=True)
        watcher.start()
        _, status, usage = os.wait4(child.pid, 0)
        self.wall = time.monotonic() - started
        self.cpu = usage.ru_utime + usage.ru_stime
        child.returncode = os.waitstatus_to_exitcode(status)
        watcher.join()
        if child.returncode != 0:
            log.seek(0)
            sys.exit(f"{' '.join(command)}: exit code {child.returncode}\n{log.read().decode(errors='replace')[-2000:]}")
        log.close()

    def _watch(self, pid):
        """The high-water mark only grows, so the last look before the end is the answer."""
        try:
            while True:
                with open(f"/proc/{pid}/status") as handle:
                    line = next((line for line in handle if line.startswith("VmHWM:")), None)
                if line is None:
                    return
                self.peak = max(self.peak, int(line.split()[1]) / 1024)
                time.sleep(0.002)
        except OSError:
            return


def best(costs):
    result = costs[0]
    result.wall = min(cost.wall for cost in costs)
    result.cpu = min(cost.cpu for cost in costs)
    result.peak = max(cost.peak for cost in costs)
    return result


def work(*parts):
    return os.path.join(CHOSEN.work, *parts)


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)
    return path


def corpus(name, *arguments):
    folder = work(name)
    if not os.path.exists(os.path.join(folder, "manifest.json")):
        subprocess.run([sys.executable, os.path.join(HERE, "corpus.py"), folder, *arguments], check=True)
    return folder


def methods(name):
    path = work(f"{name}.methods.json")
    with open(path, "w", encoding="utf-8") as handle:
        json.dump([{"LCS": "Longest Common Subsequence (LCS)"}.get(name, name)], handle)
    return path


def compare(title, ours, theirs, goal):
    """Runs both commands in turn and prints a row of the table."""
    if CHOSEN.only and CHOSEN.only not in title:
        return
    pairs = [(Cost(ours()), Cost(theirs()) if CHOSEN.matheel else None) for _ in range(CHOSEN.repeat)]
    a = best([one for one, _ in pairs])
    cells = [title, f"{a.wall:.3f}", f"{a.cpu:.3f}", f"{a.peak:.0f}"]
    if CHOSEN.matheel:
        b = best([other for _, other in pairs])
        cells += [f"{b.wall:.3f}", f"{b.cpu:.3f}", f"{b.peak:.0f}", f"{b.wall / a.wall:.1f}", f"{b.cpu / a.cpu:.1f}"]
    else:
        cells += ["-"] * 5
    print("| " + " | ".join(cells + [goal]) + " |", flush=True)


def main():
    print("| step | wall s | CPU s | peak MiB | Matheel wall s | CPU s | peak MiB | wall ratio | CPU ratio | goal |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    proctor, matheel = CHOSEN.proctor, CHOSEN.matheel
    if CHOSEN.small:
        sets = {
            "1k pairs": ["--files", "400", "--pairs", "1000", "--queries", "0"],
            "20 x 200": ["--pairs", "0", "--queries", "20", "--documents", "200"],
        }
    else:
        sets = {"100k pairs": ["--queries", "0"], "200 x 5000": ["--pairs", "0"]}
    for title, arguments in sets.items():
        folder = corpus(title.replace(" ", "-"), *arguments)
        manifest = os.path.join(folder, "manifest.json")
        protocol = os.path.join(folder, "protocol.json")
        compare(
            f"freeze {title}",
            lambda: [proctor, "freeze", manifest, "-o", protocol],
            lambda: [matheel, "benchmark", "freeze", manifest, "--output", protocol + ".theirs"],
            "30",
        )
        if not os.path.exists(protocol):
            Cost([proctor, "freeze", manifest, "-o", protocol])
        for name in ("Levenshtein", "LCS"):
            run, evaluated = work("run"), work("evaluated")
            compare(
                f"run {title}, {name}",
                lambda: [proctor, "run", protocol, methods(name), "-o", fresh(run)],
                lambda: [matheel, "benchmark", "evaluate", protocol, methods(name), "--output-dir", fresh(evaluated)],
                "10" if "pairs" in title else "8, peak < 300",
            )
    bundle = work("payload.json")
    size = ["--methods", "20", "--datasets", "5"] if CHOSEN.small else []
    subprocess.run([sys.executable, os.path.join(HERE, "bundle.py"), bundle, *size], check=True)
    compare(
        "validate 300 x 20 x 6" if not CHOSEN.small else "validate 20 x 5 x 6",
        lambda: [proctor, "validate", bundle],
        lambda: [matheel, "benchmark", "validate", bundle],
        "50, < 0.5 s, < 150 MiB",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", default=os.path.join(ROOT, "target", "bench"))
    parser.add_argument("--proctor", default=os.path.join(ROOT, "target", "release", "proctor"))
    parser.add_argument("--matheel", default=os.path.join(ROOT, "target", "matheel", "bin", "matheel"))
    parser.add_argument("--only", default="")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--small", action="store_true")
    CHOSEN = parser.parse_args()
    os.makedirs(CHOSEN.work, exist_ok=True)
    if not os.path.exists(CHOSEN.matheel):
        print(f"{CHOSEN.matheel} is not there: only our side is measured", file=sys.stderr)
        CHOSEN.matheel = ""
    main()
