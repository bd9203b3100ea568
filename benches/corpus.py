#!/usr/bin/env python3
"""Makes large benchmark corpora: the same seed, the same bytes. Standard library only.

usage: corpus.py DIRECTORY [--files N] [--pairs N] [--queries N] [--documents N] [--characters N] [--seed N]

Writes DIRECTORY/pairs and DIRECTORY/retrieval in Matheel's normalized layout, and DIRECTORY/manifest.json over both. A size of 0
leaves that dataset out. The texts look like Java: blocks of statements over a small vocabulary, about a tenth of the files disguised
copies of an earlier one.
"""

import argparse
import csv
import json
import os
import random

TYPES = ["int", "long", "double", "String", "boolean"]
VERBS = ["get", "set", "make", "find", "count", "read", "write", "sort", "merge", "check"]
NOUNS = ["item", "total", "list", "node", "value", "index", "buffer", "name", "table", "result"]


def name(rng):
    return rng.choice(VERBS) + rng.choice(NOUNS).capitalize() + str(rng.randrange(40))


def statement(rng, names):
    a, b = rng.choice(names), rng.choice(names)
    return rng.choice(
        [
            f"{rng.choice(TYPES)} {a} = {b}({rng.randrange(100)});",
            f"if ({a} > {rng.randrange(100)}) {{ {b}++; }}",
            f"for (int i = 0; i < {a}; i++) {{ {b} += i; }}",
            f'System.out.println("{a} " + {b});',
            f"return {a} + {b} * {rng.randrange(10)};",
            f"// {a} before {b}",
        ]
    )


def program(rng, characters):
    names = [name(rng) for _ in range(12)]
    length = int(characters * rng.uniform(0.5, 1.5))
    lines = [f"public class {name(rng).capitalize()} {{"]
    size = len(lines[0])
    while size < length:
        line = "    " + statement(rng, names)
        lines.append(line)
        size += len(line) + 1
    lines.append("}")
    return lines, names


def disguise(rng, lines, names):
    """Renames everything and moves a few lines."""
    renamed = {old: name(rng) for old in names}
    lines = list(lines)
    for _ in range(len(lines) // 8):
        i, j = rng.randrange(1, len(lines) - 1), rng.randrange(1, len(lines) - 1)
        lines[i], lines[j] = lines[j], lines[i]
    text = "\n".join(lines)
    for old, new in renamed.items():
        text = text.replace(old, new)
    return text + "\n"


def write_files(rng, root, prefix, count, characters):
    os.makedirs(os.path.join(root, "files"), exist_ok=True)
    rows, copies, kept = [], {}, []
    for number in range(count):
        if kept and rng.random() < 0.1:
            original, lines, names = rng.choice(kept)
            text = disguise(rng, lines, names)
            copies[number] = original
        else:
            lines, names = program(rng, characters)
            text = "\n".join(lines) + "\n"
            kept.append((number, lines, names))
        path = f"files/{prefix}{number}.java"
        with open(os.path.join(root, path), "w", encoding="utf-8", newline="\n") as handle:
            handle.write(text)
        rows.append((f"{prefix}{number}", path))
    return rows, copies


def table(root, file_name, columns, rows):
    with open(os.path.join(root, file_name), "w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def pair_dataset(rng, root, files, pairs, characters):
    rows, copies = write_files(rng, root, "f", files, characters)
    table(root, "files.csv", ["file_id", "file_path"], rows)
    chosen = [(f"f{original}", f"f{copy}", 1) for copy, original in sorted(copies.items())][: pairs // 2]
    while len(chosen) < pairs:
        left, right = rng.randrange(files), rng.randrange(files)
        if left != right:
            same = int(copies.get(left) == right or copies.get(right) == left)
            chosen.append((f"f{left}", f"f{right}", same))
    table(root, "pairs.csv", ["left_id", "right_id", "label"], chosen)


def retrieval_dataset(rng, root, queries, documents, characters):
    rows, copies = write_files(rng, root, "s", queries + documents, characters)
    table(root, "files.csv", ["file_id", "file_path"], rows)
    # The last files are the queries, so that their originals are documents.
    table(root, "queries.csv", ["query_id", "file_id"], [(f"q{n}", f"s{documents + n}") for n in range(queries)])
    table(root, "corpus.csv", ["document_id", "file_id"], [(f"d{n}", f"s{n}") for n in range(documents)])
    judged = []
    for query in range(queries):
        original = copies.get(documents + query)
        target = original if original is not None and original < documents else rng.randrange(documents)
        judged.append((f"q{query}", f"d{target}", 1))
    table(root, "qrels.csv", ["query_id", "document_id", "relevance"], judged)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--characters", type=int, default=810)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    rng = random.Random(chosen.seed)
    os.makedirs(chosen.directory, exist_ok=True)
    entries = []
    if chosen.pairs:
        pair_dataset(rng, os.path.join(chosen.directory, "pairs"), chosen.files, chosen.pairs, chosen.characters)
        entries.append({"name": "pairs", "task": "pair", "path": "pairs"})
    if chosen.queries:
        root = os.path.join(chosen.directory, "retrieval")
        retrieval_dataset(rng, root, chosen.queries, chosen.documents, chosen.characters)
        entries.append({"name": "retrieval", "task": "retrieval", "path": "retrieval"})
    for entry in entries:
        entry.update(source_url="https://example.org/generated", source_revision=f"seed-{chosen.seed}", split="test")
    manifest = {
        "pair_metrics": ["f1", "precision", "recall", "accuracy", "auroc", "average_precision"],
        "retrieval_metrics": ["mean_average_precision", "mean_reciprocal_rank", "ndcg_at_k", "precision_at_k", "recall_at_k"],
        "execution_policy": {"max_method_seconds": 3600},
        "datasets": entries,
    }
    with open(os.path.join(chosen.directory, "manifest.json"), "w", encoding="utf-8") as handle:
        json.dump(manifest, handle, indent=2)


if __name__ == "__main__":
    main()
