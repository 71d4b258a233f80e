"""Calibration text: files of the user, or text.jsonl of this package, as chunks of token numbers."""

import itertools
import json
import os

from .._error import InputError, UsageError
from .._numpy import np
from .checkpoint import error

_PART = 1 << 20  # characters of a text that are read at a time
INCLUDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "text.jsonl")


def _documents(path):
    """Yield the documents of a file: strings, or lists of messages of a conversation. A .jsonl file has one in each line,
    {"text": ...} or {"messages": [{"role": ..., "content": ...}, ...]}; other files are one text, which is read in parts
    that end with a line where lines are shorter than a part."""
    with open(path, encoding="utf-8", errors="replace") as file:
        if not path.endswith(".jsonl"):
            while part := file.read(_PART) + file.readline(_PART):
                yield part
            return
        for number, line in enumerate(file, 1):
            try:
                document = json.loads(line)
                yield document["messages"] if "messages" in document else document["text"] + "\n\n"
            except (ValueError, KeyError, TypeError):
                help = 'each line has to be {"text": "..."} or {"messages": [{"role": "user", "content": "..."}, ...]}'
                raise error(InputError, f"{path}:{number}", "not a document", help) from None


def _as_text(document, tokenizer):
    """Return a document as text; a conversation in the form of the model's chat template, if it has one."""
    if isinstance(document, str):
        return document
    if tokenizer.chat_template:
        try:
            return tokenizer.apply_chat_template(document, tokenize=False)
        except Exception:  # pylint: disable=broad-except # templates raise what they like, for roles that they do not know
            pass
    return "\n\n".join(message["content"] for message in document) + "\n\n"


def chunks_of(tokenizer, paths, tokens, chunk):
    """Return token numbers, int64 [chunks, chunk], of files that are joined; at most `tokens`, rounded up to chunks.

    Each chunk begins with the token of the beginning, if the tokenizer adds it to a text, as in llama-imatrix."""
    adds_bos = tokenizer.bos_token_id is not None and tokenizer("a").input_ids[:1] == [tokenizer.bos_token_id]
    wanted, numbers = -(-tokens // chunk) * chunk, [tokenizer.bos_token_id] * adds_bos
    for document in itertools.chain.from_iterable(map(_documents, paths)):
        text = _as_text(document, tokenizer)
        if tokenizer.bos_token and text.startswith(tokenizer.bos_token):  # of a template
            text = text[len(tokenizer.bos_token) :]
        numbers += tokenizer(text, add_special_tokens=False, verbose=False).input_ids
        if len(numbers) >= wanted:
            break
    count = min(len(numbers), wanted) // chunk
    if count == 0:
        help = f"use more text; `--chunk {max(len(numbers) // 4, 1)}` makes shorter chunks of it" if numbers else "use more text"
        raise error(UsageError, ", ".join(paths), f"the text has {len(numbers)} tokens, fewer than a chunk of {chunk}", help)
    chunks = np.array(numbers[: count * chunk], np.int64).reshape(count, chunk)
    if adds_bos:
        chunks[:, 0] = tokenizer.bos_token_id
    return chunks
