"""Renders conversations with a chat template, as transformers does: in Jinja's sandbox, with its options and functions.

The request is JSON in the variables GGUFMILL_REQUEST_0, _1, ... of the environment: {"template", "names": {"bos_token":
...}, "cases": [{"messages", "tools", "add_generation_prompt"}], "characters": limit of each text, "output": limit of the
bytes of all texts as JSON, "seconds", "bytes"}.
Prints a line of JSON for each case: {"text", "undefined": [...]} or {"error", "kind"}; or {"kind": "jinja2"} if Jinja is
missing. After the modules are loaded, the process may open no file and no connection, and start no program, and its
memory and processor time are limited: the template comes from a stranger.
"""
import datetime
import json
import os
import sys
import threading


def answer(value):
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def give_up(seconds):
    answer({"kind": "limit", "error": "it takes longer than %g s" % seconds})
    os._exit(0)


def confine(request):
    timer = threading.Timer(request["seconds"], give_up, [request["seconds"]])
    timer.daemon = True
    timer.start()
    try:
        import resource
    except ImportError:  # no POSIX system
        resource = None
    if resource:
        limits = {"RLIMIT_CPU": int(request["seconds"]) + 1, "RLIMIT_AS": request["bytes"], "RLIMIT_NOFILE": 0, "RLIMIT_CORE": 0}
        for name, most in limits.items():
            try:
                # Below the hard limit of the processor time, the signal is SIGXCPU, which names the reason.
                resource.setrlimit(getattr(resource, name), (most, most + 1 if name == "RLIMIT_CPU" else most))
            except (AttributeError, ValueError, OSError):
                pass  # not every system has every limit; the rest still holds
    refused = ("open", "socket.", "subprocess.", "os.", "ctypes.", "shutil.", "tempfile.", "urllib.")
    armed = threading.local()

    def watch(event, _arguments):
        if getattr(armed, "is_on", False) and event.startswith(refused):
            raise PermissionError("a chat template may not do this: " + event)

    sys.addaudithook(watch)
    return armed


def environment_of(undefined_names):
    import jinja2
    import jinja2.ext
    import jinja2.sandbox

    class Generation(jinja2.ext.Extension):
        """{% generation %}: marks what the model writes, for training; nothing else."""

        tags = {"generation"}

        def parse(self, parser):
            next(parser.stream)
            return parser.parse_statements(["name:endgeneration"], drop_needle=True)

    class Undefined(jinja2.Undefined):
        def _noted(self):
            owner = self._undefined_obj
            inner = "" if isinstance(owner, type(jinja2.utils.missing)) else " of a value of type " + type(owner).__name__
            if len(undefined_names) < 20:
                undefined_names.setdefault(("%s%s" % (self._undefined_name, inner))[:200])

        def __str__(self):
            self._noted()
            return super().__str__()

        def __iter__(self):
            self._noted()
            return super().__iter__()

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, undefined=Undefined, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return environment


def render(template, case, request, undefined_names):
    undefined_names.clear()
    pieces, left = [], request["characters"]
    for piece in template.generate(
            messages=case["messages"], tools=case.get("tools"), documents=None,
            add_generation_prompt=case["add_generation_prompt"], **request["names"]):
        left -= len(piece)
        if left < 0:
            return {"kind": "limit", "error": "it writes more than %d characters" % request["characters"]}
        pieces.append(piece)
    text = "".join(pieces)
    request["output"] -= len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))
    if request["output"] < 0:
        return {"kind": "limit", "error": "it writes too much for the conversations that are tried, taken together"}
    return {"text": text, "undefined": list(undefined_names)}


def described(error):
    line = getattr(error, "lineno", None)
    text = str(error) or type(error).__name__
    return text[:400] + ("" if line is None else " (line %d of the template)" % line)


def main():
    pieces = []
    while "GGUFMILL_REQUEST_%d" % len(pieces) in os.environ:
        pieces.append(os.environ["GGUFMILL_REQUEST_%d" % len(pieces)])
    request = json.loads("".join(pieces))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    undefined_names = {}
    try:
        environment = environment_of(undefined_names)
    except ImportError:
        return answer({"kind": "jinja2"})
    # Loads what Jinja and Python load late.
    for text in ("{% for x in [{'a': 1}] %}{{ x | tojson | wordwrap }}{{ x | pprint }}{{ strftime_now('%d') | upper }}{% endfor %}", "{{ raise_exception('') }}", "{{"):
        try:
            environment.from_string(text).render()
        except Exception:
            pass
    armed = confine(request)
    armed.is_on = True
    try:
        template = environment.from_string(request["template"])
    except Exception as error:  # of any kind: the template chooses it
        return answer({"kind": "syntax", "error": described(error)})
    for case in request["cases"]:
        try:
            answer(render(template, case, request, undefined_names))
        except MemoryError:
            answer({"kind": "limit", "error": "it needs more than %d MiB of memory" % (request["bytes"] >> 20)})
        except Exception as error:
            answer({"kind": "error", "error": described(error)})


main()
