"""Makes `o200k.tokens` from tiktoken's rank file, which is MIT-licensed.

    python3 make.py o200k_base.tiktoken.gz > o200k.tokens

A file holds the tokens in the order of their ranks, each as a byte with its length and then its bytes.
"""

import base64
import gzip
import sys

ranks = {}
for line in gzip.open(sys.argv[1]):
    token, rank = line.split()
    ranks[int(rank)] = base64.b64decode(token)
assert sorted(ranks) == list(range(len(ranks))), "ranks have gaps"
for rank in range(len(ranks)):
    sys.stdout.buffer.write(bytes([len(ranks[rank])]) + ranks[rank])
