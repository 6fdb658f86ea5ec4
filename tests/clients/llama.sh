#!/bin/sh
# Calls llama.cpp's server, a real provider, with a model of a few thousand random weights. Its answers are nonsense; the
# test checks that they arrive, whole and streamed, and that Tiro reports a stopped server.
#
# Usage: llama.sh BINARY
#
# Needs `llama-server` and a Python with the package `gguf`, both on the PATH:
#     .ci/llama-server FOLDER && python3 -m venv FOLDER/venv && FOLDER/venv/bin/pip install gguf
#     export PATH="FOLDER/bin:FOLDER/venv/bin:$PATH"
# A test of this checkout calls it too, so Cargo is needed. Works in an empty temporary home and project, and removes
# both.
set -eu

if [ $# -ne 1 ]; then
    sed -n '2,12s/^# \{0,1\}//p' "$0"
    exit 2
fi
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
sources=$(cd "$(dirname "$0")/../.." && pwd)
home=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$home"' EXIT
mkdir "$home/project"

# A model of two layers, with letters and bytes as tokens and random weights from a fixed seed.
python3 - "$home/tiny.gguf" <<'END'
import sys

import gguf
import numpy as np

WIDTH, HEADS, INNER, LAYERS = 64, 4, 128, 2
model = gguf.GGUFWriter(sys.argv[1], "llama")
model.add_context_length(4096)
model.add_embedding_length(WIDTH)
model.add_block_count(LAYERS)
model.add_feed_forward_length(INNER)
model.add_head_count(HEADS)
model.add_head_count_kv(HEADS)
model.add_layer_norm_rms_eps(1e-5)
model.add_rope_dimension_count(WIDTH // HEADS)
model.add_file_type(0)

letters = "\u2581abcdefghijklmnopqrstuvwxyz.,"
tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + list(letters)
model.add_tokenizer_model("llama")
model.add_token_list([token.encode() for token in tokens])
model.add_token_scores([0.0] * 3 + [-100.0] * 256 + [-1.0] * len(letters))
model.add_token_types([2, 3, 3] + [6] * 256 + [1] * len(letters))
model.add_vocab_size(len(tokens))
model.add_bos_token_id(1)
model.add_eos_token_id(2)
model.add_unk_token_id(0)
model.add_chat_template(
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n' }}{% endfor %}assistant:"
)

random = np.random.default_rng(7)


def drawn(*shape, scale=0.08):
    return (random.standard_normal(shape) * scale).astype(np.float32)


ones = np.ones(WIDTH, np.float32)
said = drawn(len(tokens), WIDTH, scale=0.3)
said[:259] *= 0.02  # letters rather than bytes
model.add_tensor("token_embd.weight", drawn(len(tokens), WIDTH, scale=1.0))
model.add_tensor("output.weight", said)
model.add_tensor("output_norm.weight", ones)
for layer in range(LAYERS):
    for name in ("attn_norm", "ffn_norm"):
        model.add_tensor(f"blk.{layer}.{name}.weight", ones)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        model.add_tensor(f"blk.{layer}.{name}.weight", drawn(WIDTH, WIDTH))
    for name, shape in (("ffn_gate", (INNER, WIDTH)), ("ffn_up", (INNER, WIDTH)), ("ffn_down", (WIDTH, INNER))):
        model.add_tensor(f"blk.{layer}.{name}.weight", drawn(*shape))
model.write_header_to_file()
model.write_kv_data_to_file()
model.write_tensors_to_file()
model.close()
END

# tiro ARGUMENT ... runs the program in the empty home.
tiro() {
    (
        cd "$home/project"
        HOME=$home XDG_DATA_HOME=$home/data XDG_STATE_HOME=$home/state XDG_CACHE_HOME=$home/cache \
            XDG_CONFIG_HOME=$home/config "$binary" "$@"
    )
}

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
address=http://127.0.0.1:$port
llama-server --model "$home/tiny.gguf" --host 127.0.0.1 --port "$port" --ctx-size 4096 --parallel 1 --threads 1 \
    --jinja >"$home/server.log" 2>&1 &
server=$!
tiro provider add llama --service openai-compatible --endpoint "$address/v1" --model tiny >/dev/null
ready=
for _ in $(seq 300); do
    if python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=1)' \
        "$address/health" 2>/dev/null; then
        ready=yes
        break
    fi
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
done
if [ -z "$ready" ]; then
    printf 'FAIL  llama-server does not start:\n' >&2
    tail -n 20 "$home/server.log" >&2
    exit 1
fi

tiro provider test llama >"$home/answer.txt" || { cat "$home/answer.txt" >&2; exit 1; }
echo "ok    tiro provider test"
(cd "$sources" && TIRO_LIVE="openai-compatible $address/v1 tiny no-key" \
    cargo test --quiet --lib llm::tests::live -- --ignored)
echo "ok    whole, in pieces, with a function"

kill "$server"
wait "$server" 2>/dev/null || true
server=
if tiro provider test llama >"$home/answer.txt" 2>&1; then
    printf 'FAIL  a server that is gone answered:\n' >&2
    cat "$home/answer.txt" >&2
    exit 1
fi
grep -q llama "$home/answer.txt" || { cat "$home/answer.txt" >&2; exit 1; }
echo "ok    a stopped server is reported"
