"""Searches vectors with faiss, for `evals vectors` to compare with.

Usage: vectors.py --data FILE --queries FILE [--dimensions 384] [--k 10] [--rounds N] [--threads 1]

Both files are raw little-endian f32, one vector after another. Searches one query at a time in an `IndexFlatIP`, after
an untimed round. Prints one JSON object: `per_query_ms`, the time of each query in each round; `top`, for each
query the row numbers of its k nearest, the nearest first.
"""

import argparse
import json
import time

import faiss
import numpy


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    faiss.omp_set_num_threads(options.threads)
    vectors = numpy.fromfile(options.data, dtype="<f4").reshape(-1, options.dimensions)
    queries = numpy.fromfile(options.queries, dtype="<f4").reshape(-1, options.dimensions)
    index = faiss.IndexFlatIP(options.dimensions)
    index.add(vectors)

    top = [index.search(query[None, :], options.k)[1][0].tolist() for query in queries]
    per_query_ms = []
    for _ in range(options.rounds):
        for query in queries:
            start = time.perf_counter()
            index.search(query[None, :], options.k)
            per_query_ms.append((time.perf_counter() - start) * 1e3)
    print(json.dumps({"faiss": faiss.__version__, "rows": len(vectors), "per_query_ms": per_query_ms, "top": top}))


if __name__ == "__main__":
    main()
