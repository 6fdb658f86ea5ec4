"""Stores texts with their embeddings in Chroma, for `evals stash` to compare with.

Usage: stash.py --texts FILE.jsonl [--threads N] [--model PATH]

FILE contains one JSON object with `text` and `type` per line. Prints one JSON object: `rounds`, the seconds of each round: embedding
all texts with sentence-transformers and adding them, with their types, to a persistent collection.
"""

import argparse
import json
import tempfile
import time

import chromadb
import torch
from sentence_transformers import SentenceTransformer

from embed import packaged_model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    model = SentenceTransformer(options.model or packaged_model(), device="cpu")
    model.max_seq_length = 256
    with open(options.texts, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    texts = [row["text"] for row in rows]
    model.encode(texts[:32], batch_size=32)
    with tempfile.TemporaryDirectory() as folder:
        client = chromadb.PersistentClient(folder)
        collection = client.create_collection("stash", metadata={"hnsw:space": "cosine"})
        start = time.perf_counter()
        vectors = model.encode(texts, batch_size=32, normalize_embeddings=True, show_progress_bar=False)
        collection.add(
            ids=[str(index) for index in range(len(texts))],
            embeddings=vectors.tolist(),
            documents=texts,
            metadatas=[{"type": row["type"]} for row in rows],
        )
        seconds = time.perf_counter() - start
    print(json.dumps({"rounds": [seconds]}))


if __name__ == "__main__":
    main()
