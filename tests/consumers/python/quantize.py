"""quantize.py LIBRARY MODEL FOLDER: quantize a model through ctypes, without the Python module."""

import ctypes
import json
import os
import sys

Progress = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_size_t), ctypes.c_void_p)


class Failure(Exception):
    """A failed call, with its status and the first error."""

    def __init__(self, library, status, error):
        super().__init__(library.ggufmill_error_text(error).decode())
        self.status = status
        self.help = library.ggufmill_error_help(error, 0).decode()
        library.ggufmill_error_free(error)


def load(path):
    """Load the library and declare what does not return an int."""
    library = ctypes.CDLL(path)
    for part in ("where", "what", "detail", "help"):
        function = getattr(library, f"ggufmill_error_{part}")
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_char_p
    library.ggufmill_error_text.argtypes, library.ggufmill_error_text.restype = [ctypes.c_void_p], ctypes.c_char_p
    library.ggufmill_version.restype = ctypes.c_char_p
    library.ggufmill_control_create.restype = ctypes.c_void_p
    for kind in ("error", "control", "context", "job", "model"):
        getattr(library, f"ggufmill_{kind}_free").argtypes = [ctypes.c_void_p]
    library.ggufmill_free.argtypes = [ctypes.c_void_p]
    library.ggufmill_control_cancel.argtypes = [ctypes.c_void_p]
    return library


def call(library, name, *arguments):
    """Call a function that can fail."""
    error = ctypes.c_void_p()
    status = getattr(library, name)(*arguments, ctypes.byref(error))
    if status != 0:
        raise Failure(library, status, error)


def text(library, name, *arguments):
    """Call a function that stores a string, and return it."""
    made = ctypes.c_void_p()
    call(library, name, *arguments, ctypes.byref(made))
    result = ctypes.string_at(made).decode()
    library.ggufmill_free(made)
    return result


def options(**members):
    return json.dumps(members).encode()


def quantize(library, context, model, output):
    tool = text(library, "ggufmill_pipeline_of", context, b"llama-quantize", options(words=[model, output, "Q4_K_M"]))
    job = ctypes.c_void_p()
    pipeline = json.loads(tool)["pipeline"].encode()
    call(library, "ggufmill_job_parse", context, pipeline, b"(arguments)", None, ctypes.byref(job))
    calls = []
    control = ctypes.c_void_p(library.ggufmill_control_create(progress := Progress(lambda *_: calls.append(1)), None))
    report = json.loads(text(library, "ggufmill_job_run", job, options(overwrite=True), control))["report"]
    assert calls and progress
    library.ggufmill_control_cancel(control)
    try:
        call(library, "ggufmill_job_run", job, options(overwrite=True), control, None)
        raise AssertionError("a canceled run was not stopped")
    except Failure as failure:
        assert failure.status == 130, failure.status
    library.ggufmill_control_free(control)
    library.ggufmill_job_free(job)
    return report


def rows(library, context):
    values = (ctypes.c_float * 32)(*range(32))
    size = ctypes.c_uint64()
    call(library, "ggufmill_row_bytes", context, b"Q8_0", ctypes.c_uint64(32), ctypes.byref(size))
    packed = ctypes.create_string_buffer(size.value)
    shape = ctypes.c_uint64(1), ctypes.c_uint64(32)
    call(
        library, "ggufmill_quantize_rows", context, b"Q8_0", None, values, *shape, None, ctypes.c_uint64(0), packed, size,
        0, None,
    )
    decoded = (ctypes.c_float * 32)()
    call(library, "ggufmill_decode_rows", context, b"Q8_0", packed, size, *shape, decoded, 0, None)
    assert all(abs(a - b) < 0.2 for a, b in zip(values, decoded)), list(decoded)


def main(path, model, folder):
    library = load(path)
    assert library.ggufmill_version_number() > 0 and b"." in library.ggufmill_version()
    context = ctypes.c_void_p()
    call(library, "ggufmill_context_create", None, ctypes.byref(context))
    rows(library, context)
    try:
        text(library, "ggufmill_call", context, b"verify", options(path=model, thread=1), None)
        raise AssertionError("an unknown option was accepted")
    except Failure as failure:
        assert failure.status == 2 and failure.help == "did you mean 'threads'?", failure
    output = os.path.join(folder, "python.gguf")
    report = quantize(library, context, model, output)
    assert report["outputs"][0]["files"][0]["bytes"] == os.path.getsize(output)
    types = json.loads(text(library, "ggufmill_call", context, b"types", None, None))["types"]
    assert any(each["name"] == "Q4_K" for each in types)
    library.ggufmill_context_free(context)


if __name__ == "__main__":
    main(*sys.argv[1:])
