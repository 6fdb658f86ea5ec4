"""Writes the reference data that the encoder and its tokenizer are held to.

Run with sentence-transformers installed and the folder of all-MiniLM-L6-v2 as the argument:

    HF_HUB_OFFLINE=1 python tests/golden/minilm.py MODEL_FOLDER

It writes, beside itself:
  minilm.json     100 texts of all lengths and scripts, with their token ids
  minilm.f16      their vectors, 100 x 384 little-endian half floats, in the same order
  wordpiece.json  for each block of 4096 code points the SHA-256 of the token ids of "a<c>b <c>" for every <c>
"""

import hashlib
import json
import pathlib
import sys

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

PROSE = [
    "We moved the cache invalidation into the write path because two workers raced on the same key.",
    "The migration takes a lock on the whole table, so it has to run outside of business hours.",
    "She asked whether the retries could be made idempotent, and nobody had a good answer.",
    "A failed embedding is stored as pending and picked up by the next idle server.",
    "Rain fell on the harbour all night, and in the morning the boats were full of water.",
    "The budget for the second quarter was cut by 12.5%, from 480,000 to 420,000 euros.",
    "Please don't merge this before the flaky test on the ARM runner has been understood!",
    "According to the log, the connection was reset 14 times between 03:02 and 03:17 UTC.",
    "Our tokenizer disagreed with the reference only on text that contained zero-width joiners.",
    "Why does the summary mention a deployment that, as far as we know, never happened?",
    "The old parser accepted trailing commas; the new one doesn't, and three clients broke.",
    "He baked the bread at 230 degrees for twenty minutes, then let it rest under a cloth.",
]
SHORT = [
    "", " ", "\n\t \r\n", "a", "the", "cache", "?", "...", "42", "3.14159", "unbelievably", "antidisestablishmentarianism",
    "Hello, world!", "how does the cache get invalidated?", "TODO: fix this", "error", "E0502", "yes", "x" * 99, "x" * 100,
    "x" * 101, "word " + "y" * 300 + " end", "don't can't won't", "state-of-the-art", "C++ vs. C#", "user@example.com",
    "https://example.com/a/b?c=d&e=f#g", "/usr/local/lib/python3.11/site-packages", "snake_case_name and camelCaseName",
    "SCREAMING_SNAKE_CASE", "v1.2.3-rc.4+build.5", "0x7fffdeadbeef", "a8098c1af86e", "1,000,000.00", "$5 < €6 ≥ £7", "50% ± 2°C",
]
SCRIPTS = [
    "Le garçon a mangé une crème brûlée à l'hôtel, près de la forêt.", "Die Größe der Straße überraschte Jürgen sehr.",
    "El niño pidió más información sobre el corazón.", "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Cafe\u0301 noir, nai\u0308ve re\u0301sume\u0301", "İstanbul'da ılık bir gün", "ﬁne ligatures and ｆｕｌｌｗｉｄｔｈ letters",
    "Быстрая коричневая лиса перепрыгивает через ленивую собаку.", "Η γρήγορη αλεπού πηδά πάνω από τον σκύλο· γιατί;",
    "我们昨天把缓存失效的逻辑移到了写入路径。", "東京の天気は今日も雨です。キャッシュを消してください。", "데이터베이스 마이그레이션이 실패했습니다.",
    "كيف يتم إبطال ذاكرة التخزين المؤقت؟", "כיצד מבטלים את המטמון?", "कैश को कैसे अमान्य किया जाता है?", "แคชถูกทำให้ใช้ไม่ได้อย่างไร",
    "Bộ nhớ đệm bị vô hiệu hóa như thế nào?", "🎉🚀 shipped it! 👩‍👩‍👧‍👦 👍🏽 🇩🇪", "😀", "mixed 日本語 and English и русский in одном тексте",
    "ᚠᛇᚻ ᛒᛦᚦ ᚠᚱᚩᚠᚢᚱ", "∀x ∈ ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β", "H₂O and E = mc²", "Ⅷ ½ ㎏ ™ ℃", "\u202egnitirw lamron\u202c bidi",
]
CODE = [
    "fn main() {\n    println!(\"Hello, {}!\", name);\n}\n", "SELECT id, name FROM users WHERE deleted_at IS NULL ORDER BY created_at DESC LIMIT 10;",
    "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n", "git rebase -i HEAD~3 && git push --force-with-lease",
    "{\"id\": 17, \"tags\": [\"a\", \"b\"], \"ok\": true, \"none\": null}", "if (!(a && b) || c <= d) { return -1; } /* why? */",
    "Traceback (most recent call last):\n  File \"app.py\", line 42, in <module>\n    raise ValueError(\"bad input\")\nValueError: bad input",
    "<div class=\"card\"><a href='#'>click &amp; go</a></div>", "^(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]+)$", "\x00\x01nul and \x07bell\x1b[31mred\x1b[0m \x7fdel\x85nel\u200bzero\ufeffbom\ufffd",
    "[CLS] not [SEP] special [MASK] but [UNK] here [PAD][PAD] [sep]", "- [x] done\n- [ ] open\n\n# Title\n\n| a | b |\n|---|---|\n",
]


def texts() -> list[str]:
    out = SHORT + SCRIPTS + CODE
    out += PROSE[:8]
    for i, sentences in enumerate((2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 20, 30)):
        out.append(" ".join(PROSE[(i + j) % len(PROSE)] for j in range(sentences)))
    out.append("".join(SCRIPTS[9:12]) * 8)
    out.append("\n".join(CODE) * 4)
    out.append(" ".join(SCRIPTS) * 2)
    assert len(out) == 100, len(out)
    return out


def main() -> None:
    folder, here = sys.argv[1], pathlib.Path(__file__).parent
    torch.set_num_threads(1)
    model = SentenceTransformer(folder, device="cpu")
    model.max_seq_length = 256
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    entries, vectors = [], []
    for text in texts():
        entries.append({"text": text, "ids": tokenizer.encode(text).ids})
        vectors.append(model.encode([text], normalize_embeddings=True)[0])
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
    (here / "minilm.json").write_text(f"[\n{lines}\n]\n")
    (here / "minilm.f16").write_bytes(np.array(vectors).astype("<f2").tobytes())
    blocks = []
    for first in range(0, 0x110000, 4096):
        points = [p for p in range(first, first + 4096) if not 0xD800 <= p < 0xE000]
        batch = tokenizer.encode_batch([f"a{chr(p)}b {chr(p)}" for p in points])
        ids = np.array([i for e in batch for i in e.ids], dtype="<u4")
        blocks.append(hashlib.sha256(ids.tobytes()).hexdigest())
    (here / "wordpiece.json").write_text(json.dumps(blocks, indent=0) + "\n")


main()
