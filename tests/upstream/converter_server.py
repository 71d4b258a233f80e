"""converter_server.py SOURCE: runs the converters of a version with the real libraries.

Run by the Python that has them. Imports the libraries and the converter once and forks for each request, so that no run
sees what another has left behind. Requests and answers are JSON, one per line:
  {"tool": "convert" | "convert-lora", "arguments", "log", "result", "timeout"} -> {"exit", "message"}"""
import importlib
import json
import os
import runpy
import signal
import sys
import time
import traceback
from pathlib import Path

# Imported before the fork: what every conversion would import.
PRELOADED = ("torch", "numpy", "safetensors.torch", "sentencepiece", "transformers", "transformers.models.auto.tokenization_auto",
             "transformers.models.auto.configuration_auto", "transformers.convert_slow_tokenizer",
             "transformers.models.llama.tokenization_llama_fast", "transformers.models.gpt2.tokenization_gpt2_fast",
             "transformers.models.bert.tokenization_bert_fast")


def load(source):
    sys.path[:0] = [source, source + "/gguf-py"]
    for name in PRELOADED:
        importlib.import_module(name)
    sys.modules["torch"].set_num_threads(1)
    converter = importlib.import_module("convert_hf_to_gguf")
    try:
        importlib.import_module("conversion").load_all_models()
    except (ImportError, AttributeError):
        pass  # versions in which the converter is one file
    return converter


def run(converter, source, request):
    """In the child. Returns the exit status and the message of the error."""
    try:
        script = "convert_lora_to_gguf.py" if request["tool"] == "convert-lora" else "convert_hf_to_gguf.py"
        sys.argv = [f"{source}/{script}", *request["arguments"]]
        if request["tool"] == "convert-lora":
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            converter.main()
    except SystemExit as stop:
        return (stop.code if isinstance(stop.code, int) else int(stop.code is not None)), ""
    except BaseException as error:
        traceback.print_exc()
        return 1, f"{type(error).__name__}: {error}"
    return 0, ""


def serve(converter, source, request):
    result, begin = Path(request["result"]), time.time()
    result.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            status, message = run(converter, source, request)
            result.write_text(json.dumps({"exit": status, "message": message}))
            sys.stdout.flush()
        finally:
            os._exit(0)
    message = "the process died"
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.time() - begin > request["timeout"]:
            message = f"no result after {request['timeout']} s"
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.02)
    return json.loads(result.read_text()) if result.exists() else {"exit": -1, "message": message}


def main():
    source = str(Path(sys.argv[1]).resolve())
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the libraries print goes to the log
    converter = load(source)
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        print(json.dumps(serve(converter, source, json.loads(line))), file=answers)


if __name__ == "__main__":
    main()
