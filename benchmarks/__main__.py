"""``python -m benchmarks [NAME ...] [--max 1e8]``: run the named measurements, or all."""

from __future__ import annotations

import argparse

from benchmarks import (
    acp,
    auto,
    binning,
    bls,
    boosting,
    cold_start,
    combine,
    drift,
    elite,
    engines,
    evaluate,
    export,
    features,
    fit,
    many_classes,
    monitor,
    near_isotonic,
    peers,
    prior,
    rare,
    scaling,
    similarity,
    spline,
    sql,
    tensors,
    venn_abers,
)

MEASUREMENTS = {
    "cold_start": cold_start.run,
    "fit": fit.run,
    "peers": peers.run,
    "binning": binning.run,
    "bls": bls.run,
    "near_isotonic": near_isotonic.run,
    "elite": elite.run,
    "boosting": boosting.run,
    "similarity": similarity.run,
    "features": features.run,
    "acp": acp.run,
    "combine": combine.run,
    "scaling": scaling.run,
    "many_classes": many_classes.run,
    "tensors": tensors.run,
    "venn_abers": venn_abers.run,
    "spline": spline.run,
    "evaluate": evaluate.run,
    "engines": engines.run,
    "export": export.run,
    "sql": sql.run,
    "prior": prior.run,
    "rare": rare.run,
    "drift": drift.run,
    "monitor": monitor.run,
    "auto": auto.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help=f"which of {', '.join(MEASUREMENTS)} (default: all)"
    )
    parser.add_argument("--max", type=float, default=1e7, help="the largest N (default 1e7)")
    options = parser.parse_args()
    unknown = set(options.names) - set(MEASUREMENTS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(MEASUREMENTS)}")
    sizes = [n for n in (10**3, 10**4, 10**5, 10**6, 10**7, 10**8) if n <= options.max]
    for name in options.names or MEASUREMENTS:
        MEASUREMENTS[name](sizes)


if __name__ == "__main__":
    main()
