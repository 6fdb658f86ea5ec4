"""Times sentence-transformers on one thread, for comparison with `tiro`'s own encoder.

    python embed.py MODEL_FOLDER [--texts FILE] [--rounds N] [--limit TOKENS] [--batch N]

Texts are JSON strings, one a line, from FILE or standard input. Without `--rounds` it prints one line when it is
loaded and then runs one round for each line it reads (from FILE's companion, standard input), so that a driver
can interleave it with others. Every answer is a line of JSON:

    {"event": "loaded", "seconds": ..., "texts": ..., "tokens": ..., "rss_mb": ..., "versions": {...}}
    {"event": "round", "seconds": ..., "tokens_per_second": ...}
    {"event": "query", "milliseconds": ...}        the median of 30 single short texts, once, after the rounds
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

QUERY = "how does the cache get invalidated when two workers race?"


def say(**answer) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--texts", type=pathlib.Path)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--limit", type=int, default=256)
    parser.add_argument("--batch", type=int, default=32)
    arguments = parser.parse_args()
    if arguments.texts is None and arguments.rounds is None:
        parser.error("texts on standard input need --rounds")

    start = time.perf_counter()
    import sentence_transformers
    import torch

    torch.set_num_threads(1)
    model = sentence_transformers.SentenceTransformer(arguments.model, device="cpu")
    model.max_seq_length = arguments.limit
    model.encode(["warm up"])
    loaded = time.perf_counter() - start

    lines = arguments.texts.read_text().splitlines() if arguments.texts else sys.stdin
    texts = [json.loads(line) for line in lines if line.strip()]
    tokens = sum(len(ids) for ids in model.tokenizer(texts, truncation=True, max_length=arguments.limit)["input_ids"])
    status = pathlib.Path("/proc/self/status")
    rss = next((int(line.split()[1]) for line in status.open() if line.startswith("VmRSS")), 0) if status.exists() else 0
    versions = {"sentence_transformers": sentence_transformers.__version__, "torch": torch.__version__}
    say(event="loaded", seconds=loaded, texts=len(texts), tokens=tokens, rss_mb=rss / 1024, versions=versions)

    def round_() -> None:
        start = time.perf_counter()
        model.encode(texts, batch_size=arguments.batch, normalize_embeddings=True, show_progress_bar=False)
        seconds = time.perf_counter() - start
        say(event="round", seconds=seconds, tokens_per_second=tokens / seconds)

    if arguments.rounds is None:
        for _ in sys.stdin:
            round_()
    else:
        for _ in range(arguments.rounds):
            round_()

    times = []
    for _ in range(30):
        start = time.perf_counter()
        model.encode([QUERY], normalize_embeddings=True, show_progress_bar=False)
        times.append(time.perf_counter() - start)
    say(event="query", milliseconds=statistics.median(times) * 1000)


main()
