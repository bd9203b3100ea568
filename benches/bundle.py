#!/usr/bin/env python3
"""Makes a large bundle that holds: METHODS x DATASETS x 6 pair metrics. Standard library only.

usage: bundle.py FILE [--methods 300] [--datasets 20] [--seed 1]

Nothing was run: protocol, methods, rows, ranks and aggregates are made up and consistent, which is all a validator without data can see.
"""

import argparse
import hashlib
import json
import random
import statistics

METRICS = ["f1", "accuracy", "precision", "recall", "auroc", "average_precision"]


def digest(value):
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def protocol_of(datasets):
    entries = [
        {
            "name": f"dataset {n:02}",
            "domain": "plagiarism",
            "task_family": "pair",
            "source_url": "https://example.org/generated",
            "source_revision": "seed-1",
            "split": "test",
            "content": {"sha256": digest(n), "counts": {"files": 20, "pairs": 50 + n}},
            "selection": {"mode": "provided_split"},
            "source_checksum": None,
            "similarity_options": {},
            "k": 10,
            "expected_result_count": 50 + n,
        }
        for n in range(datasets)
    ]
    protocol = {
        "schema_version": 1,
        "benchmark_id": "Generated-v1",
        "domain": "plagiarism",
        "seed": None,
        "datasets": entries,
        "pair_metrics": METRICS,
        "retrieval_metrics": ["mean_average_precision"],
        "split_policy": {"type": "provided_test", "description": "Generated.", "group_fields": []},
        "threshold_policy": {"mode": "fixed", "value": 0.5},
        "execution_policy": {"max_method_seconds": 1800.0},
        "aggregation": "macro_mean_over_all_declared_datasets_per_domain_task_metric",
        "coverage_policy": "all_required_metrics_finite_on_every_declared_dataset",
        "evaluation_rules": {
            "pair_positive_label": 1,
            "pair_decision": "score >= threshold",
            "retrieval_unjudged_relevance": 0,
            "retrieval_ties": "document_id_ascending",
            "average_precision_depth": "full_ranking",
            "aggregation_weighting": "equal_dataset_weight",
        },
    }
    protocol["protocol_id"] = digest(protocol)
    return protocol


def rank(rows, key):
    """Ranks by score, high first, ties share the smallest rank; puts rows in their published order."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[k] for k in key), []).append(row)
    ordered = []
    for group in sorted(groups):
        members = groups[group]
        score = "score" if "score" in members[0] else "mean_score"
        members.sort(key=lambda row: (-row[score], row["algorithm_name"]))
        for position, row in enumerate(members, start=1):
            tied = position > 1 and members[position - 2][score] == row[score]
            row["rank"] = members[position - 2]["rank"] if tied else position
        ordered.extend(members)
    return ordered


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--methods", type=int, default=300)
    parser.add_argument("--datasets", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    rng = random.Random(chosen.seed)
    protocol = protocol_of(chosen.datasets)
    identity = {"benchmark_id": protocol["benchmark_id"], "protocol_id": protocol["protocol_id"]}
    configurations, rows, aggregate = {}, [], []
    for number in range(chosen.methods):
        configuration = {
            "algorithm_options": {"number": number},
            "k": None,
            "threshold": None,
            "matheel_version": "0.7.1",
            "similarity_options": {"feature_weights": {"levenshtein": 1.0}, "code_language": "java"},
        }
        method = {"algorithm_name": f"method {number:03}", "algorithm_id": digest(configuration)}
        configurations[method["algorithm_id"]] = configuration
        own = []
        for entry in protocol["datasets"]:
            elapsed = rng.uniform(0.5, 30.0)
            for metric in METRICS:
                own.append(
                    {
                        "domain": "plagiarism",
                        "task_type": "plagiarism",
                        "task_family": "pair",
                        "dataset_name": entry["name"],
                        **method,
                        "metric": metric,
                        "score": rng.random(),
                        "sample_count": entry["expected_result_count"],
                        "dataset_source": "local",
                        "algorithm_kind": "builtin",
                        "status": "completed",
                        "not_applicable_reason": None,
                        "elapsed_seconds": elapsed,
                        "eligible": True,
                        "rank": None,
                        "dataset_fingerprint": entry["content"]["sha256"],
                        **identity,
                    }
                )
        rows.extend(own)
        for metric in METRICS:
            these = [row for row in own if row["metric"] == metric]
            scores = [row["score"] for row in these]
            aggregate.append(
                {
                    "domain": "plagiarism",
                    "task_family": "pair",
                    **method,
                    "metric": metric,
                    "status": "completed",
                    "not_applicable_reason": None,
                    "mean_score": statistics.fmean(scores),
                    "median_score": statistics.median(scores),
                    "dataset_count": len(these),
                    "expected_dataset_count": len(these),
                    "coverage": 1.0,
                    "complete_coverage": True,
                    "eligible": True,
                    "sample_count": sum(row["sample_count"] for row in these),
                    "elapsed_seconds": sum(row["elapsed_seconds"] for row in these),
                    "task_type": "plagiarism",
                    "rank": None,
                    **identity,
                }
            )
    payload = {
        "schema_version": 1,
        "metadata": {
            "schema_version": 1,
            "name": protocol["benchmark_id"],
            **identity,
            "domain": "plagiarism",
            "strict_coverage": True,
            "result_status": "protocol_evaluation",
            "benchmark_protocol": protocol,
            "method_configurations": configurations,
            "thresholds": [],
            "score_artifacts": [],
        },
        "per_dataset": rank(rows, ["domain", "task_family", "dataset_name", "metric"]),
        "aggregate": rank(aggregate, ["domain", "task_family", "metric"]),
    }
    with open(chosen.file, "w", encoding="utf-8") as handle:
        json.dump(payload, handle, indent=2, sort_keys=True)


if __name__ == "__main__":
    main()
