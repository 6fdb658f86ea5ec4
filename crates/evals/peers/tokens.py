"""Counts texts with tiktoken, for `evals tokens` to compare with.

Usage: tokens.py RANKS.gz FILE [--encoding o200k|cl100k] [--repeat N]

RANKS.gz is a gzipped tiktoken rank file, so that tiktoken need not download it. FILE contains one JSON string per line,
each a text. Prints one JSON object: `seconds` of each repetition over all texts, on one thread, after an untimed one; `bytes`; `counts`, for each text the number of tokens that `encode_ordinary` gives.
"""

import argparse
import base64
import gzip
import json
import time

import tiktoken
import tiktoken_ext.openai_public as public


def encoding(name, ranks_path):
    """Returns the official encoding, with ranks read from a file."""
    with gzip.open(ranks_path, "rt") as lines:
        ranks = {base64.b64decode(token): int(rank) for token, rank in map(str.split, filter(str.strip, lines))}
    public.load_tiktoken_bpe = lambda *_args, **_kwargs: ranks
    return tiktoken.Encoding(**getattr(public, f"{name}_base")())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ranks")
    parser.add_argument("file")
    parser.add_argument("--encoding", choices=["o200k", "cl100k"], default="o200k")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()

    encoder = encoding(options.encoding, options.ranks)
    with open(options.file, encoding="utf-8") as lines:
        texts = [json.loads(line) for line in lines]

    def count():
        return [len(encoder.encode_ordinary(text)) for text in texts]

    counts = count()
    seconds = []
    for _ in range(options.repeat):
        start = time.perf_counter()
        count()
        seconds.append(time.perf_counter() - start)
    size = sum(len(text.encode()) for text in texts)
    print(json.dumps({"tiktoken": tiktoken.__version__, "bytes": size, "seconds": seconds, "counts": counts}))


if __name__ == "__main__":
    main()
