#!/usr/bin/env python3
"""Writes configs/complete_models.tsv: the tensors that llama.cpp's loader expects of each architecture, and their shapes.

Reads the functions load_arch_tensors() and load_arch_hparams() of a source of llama.cpp without compiling them: it follows
assignments, conditions, loops over layers, and local lambdas symbolically. What it does not understand becomes `?`, an
unknown value: a tensor under an unknown condition is not required, and an unknown size is not compared.

    tests/upstream/loader.py LLAMA_CPP > configs/complete_models.tsv
"""
import re
import sys
from pathlib import Path

# ---- expressions: nested tuples (operator, operand...), ("name", text, index or None), ("number", n), ("has", name), ("?",)
UNKNOWN = ("?",)
FLAGS = {"TENSOR_NOT_REQUIRED": 1, "TENSOR_DUPLICATED": 2, "TENSOR_SKIP": 4, "TENSOR_SKIP_IF_VIRTUAL": 8, "TENSOR_ALLOW_RESHAPE": 16,
         "TENSOR_READ_LAZY": 32}
LEVELS = [["||"], ["&&"], ["|"], ["==", "!="], ["<", "<=", ">", ">="], ["+", "-"], ["*", "/", "%"]]
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\d+(?:\.\d+)?[fuUlL]*|[A-Za-z_]\w*|->|::|\+\+|--|\|\||&&|\|=|\+=|-=|\*=|/=|[<>=!]=|\S')


def number(n):
    return ("number", int(n))


def truth(e):
    return None if e[0] != "number" else e[1] != 0


def simple(e):
    """Folds constants."""
    op = e[0]
    if op == "!":
        if e[1][0] == "number":
            return number(not e[1][1])
        if e[1][0] == "!":
            return e[1][1]
        opposite = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
        if e[1][0] in opposite:
            return (opposite[e[1][0]],) + e[1][1:]
        return UNKNOWN if e[1] == UNKNOWN else e
    if op == "?:":
        if truth(e[1]) is not None:
            return e[2] if truth(e[1]) else e[3]
        if e[2] == e[3]:
            return e[2]
        if e[2] == number(1) and e[3] == number(0):
            return e[1]
        if e[2] == number(0) and e[3] == number(1):
            return simple(("!", e[1]))
        return e
    if op in ("&&", "||"):
        absorbing = op == "||"
        for a, b in ((e[1], e[2]), (e[2], e[1])):
            if truth(a) is not None:
                return number(absorbing) if truth(a) == absorbing else b
        return e[1] if e[1] == e[2] else e
    if op in ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "|"):
        a, b = e[1], e[2]
        if a[0] == b[0] == "number":
            x, y = a[1], b[1]
            if op in "/%" and y == 0:
                return UNKNOWN
            value = {"+": x + y, "-": x - y, "*": x * y, "/": x // y if y else 0, "%": x % y if y else 0, "==": x == y, "!=": x != y, "<": x < y,
                     "<=": x <= y, ">": x > y, ">=": x >= y, "|": x | y}[op]
            return number(value)
        if op == "*" and number(1) in (a, b):
            return b if a == number(1) else a
        if UNKNOWN in (a, b) and op != "*":
            return UNKNOWN
    return e


def text_of(e, level=0):
    op = e[0]
    if op == "number":
        return str(e[1])
    if op == "name":
        return e[1] if e[2] is None else f"{e[1]}[{text_of(e[2])}]"
    if op == "has":
        return f"has({e[1]})"
    if op == "key":
        return f"key({e[1]})" if e[2] is None else f"key({e[1]}, {text_of(e[2])})"
    if op == "?":
        return "?"
    if op == "!":
        return "!" + text_of(e[1], 9)
    if op == "max":
        return f"max({text_of(e[1])}, {text_of(e[2])})"
    if op == "?:":
        text = f"{text_of(e[1], 1)} ? {text_of(e[2], 1)} : {text_of(e[3], 1)}"
        return f"({text})" if level else text
    mine = next(i for i, each in enumerate(LEVELS) if op in each) + 1
    text = f"{text_of(e[1], mine)} {op} {text_of(e[2], mine + 1)}"
    return f"({text})" if mine < level else text


class Expressions:
    """Parses C++ expressions, with the values of local variables in `scope`."""

    def __init__(self, tokens, scope):
        self.tokens, self.at, self.scope = tokens, 0, scope

    def peek(self, n=0):
        return self.tokens[self.at + n] if self.at + n < len(self.tokens) else ""

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def parse(self):
        e = self.ternary()
        return e if self.at == len(self.tokens) else UNKNOWN

    def ternary(self):
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take()
        yes = self.ternary()
        if self.peek() != ":":
            return UNKNOWN
        self.take()
        no = self.ternary()
        return simple(("?:", condition, yes, no))

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            op = self.take()
            right = self.binary(level + 1)
            if "null" in (left[0], right[0]):
                other = right if left[0] == "null" else left
                left = other if op == "!=" else simple(("!", other)) if other[0] == "has" else UNKNOWN
            else:
                left = simple((op, left, right))
        return left

    def arguments(self, closing=")"):
        """Returns the token lists of the arguments; the opening bracket was taken."""
        parts, depth = [[]], 0
        while self.at < len(self.tokens):
            token = self.take()
            if depth == 0 and token == closing:
                break
            depth += token in "([{"
            depth -= token in ")]}"
            if token == "," and depth == 0:
                parts.append([])
            else:
                parts[-1].append(token)
        return [p for p in parts if p]

    def inner(self, tokens):
        return Expressions(tokens, self.scope).parse()

    def unary(self):
        token = self.take() if self.at < len(self.tokens) else ""
        if token == "!":
            return simple(("!", self.unary()))
        if token == "-":
            return simple(("-", number(0), self.unary()))
        if token == "(":
            inside = self.arguments()
            if len(inside) == 1 and all(re.fullmatch(r"(u?int\d*_t|int|long|size_t|llama_token)", t) for t in inside[0]):
                return self.unary()
            return self.postfix(self.inner(inside[0]) if len(inside) == 1 else UNKNOWN)
        if re.match(r"\d", token):
            digits = re.match(r"\d+", token).group()
            return number(digits) if "." not in token else UNKNOWN
        if token in ("nullptr", "NULL"):
            return ("null",)
        if token in ("true", "false"):
            return number(token == "true")
        if token in ("int", "int64_t", "uint32_t") and self.peek() == "(":
            self.take()
            return self.inner(self.arguments()[0])
        if token == "static_cast":
            while self.take() != ">":
                pass
            self.take()
            return self.inner(self.arguments()[0])
        if token == "std" and self.peek() == "::":
            self.take()
            name = self.take()
            if self.peek() == "<":
                while self.take() != ">":
                    pass
            if self.peek() == "(":
                self.take()
                args = [self.inner(a) for a in self.arguments()]
                if name == "max" and len(args) == 2 and UNKNOWN not in args:
                    return ("max", *args)
            return UNKNOWN
        if re.match(r"[A-Za-z_]", token):
            return self.postfix(self.named(token))
        return UNKNOWN

    def named(self, token):
        if token in ("ml", "hparams", "layer", "layers", "this", "vocab"):
            return ("object", token)
        if token in FLAGS:
            return number(FLAGS[token])
        if token in self.scope:
            return self.scope[token]
        if token.startswith("LLM_TENSOR_"):
            return ("text", token)
        return UNKNOWN

    def postfix(self, e):
        while self.peek() in (".", "->", "[", "("):
            token = self.take()
            if token in (".", "->"):
                member = self.take()
                e = self.member(e, member)
            elif token == "[":
                index = self.arguments("]")
                if e[0] == "name" and len(index) == 1:
                    e = ("name", e[1], self.inner(index[0]))
                elif e != ("object", "layers"):
                    e = UNKNOWN
            else:
                args = self.arguments()
                e = UNKNOWN
        return e

    def member(self, e, member):
        if e == ("object", "ml") or e == ("object", "this"):
            if member == "load_mtp":  # a model can be written without the layers that predict further tokens
                return ("name", "has_nextn", None)
            if member in ("get_weight", "get_tensor_meta", "require_weight") and self.peek() == "(":
                self.take()
                return self.tensor_named(self.arguments()[0])
            if member == "hparams":
                return ("object", "hparams")
            return UNKNOWN
        if e == ("object", "hparams"):
            if member in ("posnet", "convnext"):
                self.take()
                member += "_" + self.take()
            index = None
            if self.peek() == "(":
                self.take()
                args = self.arguments()
                index = self.inner(args[0]) if args else None
            if index == UNKNOWN:
                return UNKNOWN
            return ("name", member.removesuffix("_impl").removesuffix("_arr"), index)
        if e in (("object", "layers"), ("object", "layer")):
            name = member
            while self.peek() == ".":
                self.take()
                name += "." + self.take()
            return self.scope.get("layer." + name, UNKNOWN)
        return UNKNOWN

    def tensor_named(self, tokens):
        name = tensor_text(tokens, self.scope)
        return ("has", name) if name else UNKNOWN


def tensor_text(tokens, scope):
    """Returns a tensor's name from a C++ expression of std::string or const char *, or None."""
    text = " ".join(tokens)
    if found := re.fullmatch(r"tn \( (\w+) (?:, (\"\w+\") )?(?:, (.+) )?\)( \. str \( \) \. c_str \( \)| \. str \( \))?", text):
        return tensor_name(found[1], found[2], found[3], scope)
    if found := re.fullmatch(r"(\w+)(?: \. c_str \( \))?", text):
        value = scope.get(found[1])
        return value[1] if value and value[0] == "text" else None
    parts = [p.strip() for p in text.split(" + ")]
    name = ""
    for part in parts:
        if found := re.fullmatch(r'"([^"]*)"', part):
            name += found[1]
        elif found := re.fullmatch(r"std :: to_string \( (\w+) \)", part):
            value = scope.get(found[1], UNKNOWN)
            if value == UNKNOWN:
                return None
            name += "{" + text_of(value) + "}"
        else:
            return None
    return name


NAMES, KEYS, DEFAULTS = {}, {}, {}


def tensor_name(identifier, suffix, layer, scope):
    if identifier in scope and scope[identifier][0] == "text":
        identifier = scope[identifier][1]
    name = NAMES.get(identifier)
    if name is None:
        return None
    if "%d" in name:
        if layer is None:
            return None
        value = Expressions(layer.split(), scope).parse()
        if value == UNKNOWN:
            return None
        name = name.replace("%d", "{" + text_of(value) + "}", 1)
        if "%d" in name:
            return None
    return name + ("." + suffix.strip('"') if suffix else "")


# ---- statements
def blocks(tokens, at, closing):
    """Returns the index after the bracket that closes the one at `at`."""
    depth = 0
    opening = tokens[at]
    while True:
        depth += tokens[at] == opening
        depth -= tokens[at] == closing
        at += 1
        if depth == 0:
            return at


def statement(tokens, at):
    """Returns (statement, index after it). Statements: ("block", [..]), ("if", condition, yes, no), ("for", head, body), ("text", tokens)."""
    token = tokens[at]
    if token == "{":
        end = blocks(tokens, at, "}")
        return ("block", sequence(tokens[at + 1:end - 1])), end
    if token == "if":
        at += 1
        if tokens[at] == "constexpr":
            at += 1
        end = blocks(tokens, at, ")")
        condition = tokens[at + 1:end - 1]
        yes, end = statement(tokens, end)
        no = ("block", [])
        if end < len(tokens) and tokens[end] == "else":
            no, end = statement(tokens, end + 1)
        return ("if", condition, yes, no), end
    if token in ("for", "while", "switch"):
        end = blocks(tokens, at + 1, ")")
        head = tokens[at + 2:end - 1]
        body, end = statement(tokens, end)
        return (token, head, body), end
    if token == "try":  # one shape or another: which one is not known
        end = blocks(tokens, at + 1, "}")
        body = sequence(tokens[at + 2:end - 1])
        while end < len(tokens) and tokens[end] == "catch":
            begin = blocks(tokens, end + 1, ")")
            end = blocks(tokens, begin, "}")
            body += sequence(tokens[begin + 1:end - 1])
        return ("while", [], ("block", body)), end
    if token in ("case", "default"):
        while tokens[at] != ":":
            at += 1
        return ("block", []), at + 1
    start = at
    while at < len(tokens) and tokens[at] != ";":
        if tokens[at] in "([{" and len(tokens[at]) == 1:
            at = blocks(tokens, at, {"(": ")", "[": "]", "{": "}"}[tokens[at]])
        else:
            at += 1
    return ("text", tokens[start:at]), at + 1


def sequence(tokens):
    statements, at = [], 0
    while at < len(tokens):
        if tokens[at] == ";":
            at += 1
            continue
        one, at = statement(tokens, at)
        statements.append(one)
    return statements


def split(tokens, separator):
    parts, depth = [[]], 0
    for token in tokens:
        depth += token in "([{" and len(token) == 1
        depth -= token in ")]}" and len(token) == 1
        if token == separator and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def flag(e, bit):
    """The condition under which flags have a bit."""
    if e[0] == "number":
        return number(bool(e[1] & bit))
    if e[0] == "|":
        return simple(("||", flag(e[1], bit), flag(e[2], bit)))
    if e[0] == "?:":
        return simple(("?:", e[1], flag(e[2], bit), flag(e[3], bit)))
    if e[0] in ("&&", "!", "==", "!=", "<", "<=", ">", ">=", "has", "||") or e[:2] == ("name", "has_nextn"):  # 0 or 1
        return e if bit == 1 else number(0)
    return UNKNOWN


class Loader:
    def __init__(self, arch):
        self.arch, self.rows, self.lambdas = arch, [], {}

    def run(self, statements, scope, when, layers):
        """Returns the condition under which the statements after these are reached."""
        for each in statements:
            when = self.step(each, scope, when, layers)
        return when

    def expression(self, tokens, scope):
        if len(tokens) >= 3 and "arch" in tokens:
            known = []
            i = 0
            while i < len(tokens):
                if tokens[i] == "arch" and i + 2 < len(tokens) and tokens[i + 1] in ("==", "!="):
                    known.append("true" if (tokens[i + 2] == self.arch) == (tokens[i + 1] == "==") else "false")
                    i += 3
                else:
                    known.append(tokens[i])
                    i += 1
            tokens = known
        e = Expressions(tokens, scope).parse()
        return UNKNOWN if e[0] in ("object", "null", "text") else e

    def step(self, each, scope, when, layers):
        kind = each[0]
        if kind == "block":
            inner = Scope(scope)
            when = self.run(each[1], inner, when, layers)
            for name, value in inner.changed.items():
                scope.assign(name, value)
            return when
        if kind == "if":
            condition = self.expression(each[1], scope)
            yes, no = Scope(scope), Scope(scope)
            after_yes = self.step(each[2], yes, simple(("&&", when, condition)), layers)
            after_no = self.step(each[3], no, simple(("&&", when, simple(("!", condition)))), layers)
            for name in set(yes.outer_changes()) | set(no.outer_changes()):
                a, b = yes.get(name, UNKNOWN), no.get(name, UNKNOWN)
                value = a if a == b else UNKNOWN
                if a != b and "text" not in (a[0], b[0]):
                    if a[0] == "has" and no.outer_changes().get(name) is None:
                        value = a
                    elif UNKNOWN not in (a, b):
                        value = simple(("?:", condition, a, b))
                scope.assign(name, value)
            if after_yes == number(0):
                return simple(("&&", when, simple(("!", condition)))) if truth(condition) is None else after_no
            if after_no == number(0):
                return simple(("&&", when, condition)) if truth(condition) is None else after_yes
            return when
        if kind == "for":
            parts = split(each[1], ";")
            if len(parts) != 3:
                return when
            inner = Scope(scope)
            first = re.fullmatch(r"(?:int|uint32_t) (\w+) = (.+)", " ".join(parts[0]))
            last = re.fullmatch(r"(\w+) < (.+)", " ".join(parts[1]))
            if not first or not last or layers:
                inner.own("*unknown", UNKNOWN)
                if first:
                    inner.own(first[1], UNKNOWN)
                self.step(each[2], inner, UNKNOWN, layers or ("?", "?"))
                return when
            begin, end = self.expression(first[2].split(), scope), self.expression(last[2].split(), scope)
            inner.own(first[1], ("name", "i", None))
            self.step(each[2], inner, when, (text_of(begin), text_of(end)))
            for name, value in inner.changed.items():
                scope.assign(name, value if value[0] == "has" else UNKNOWN)
            return when
        if kind in ("while", "switch"):
            self.step(each[2], Scope(scope), UNKNOWN, layers)
            return when
        return self.plain(each[1], scope, when, layers)

    def plain(self, tokens, scope, when, layers):
        if not tokens or tokens[0] in ("GGML_ASSERT", "GGML_UNUSED", "LLAMA_LOG_INFO", "LLAMA_LOG_WARN", "break"):
            return when
        if tokens[0] in ("return", "continue"):
            return number(0)
        if tokens[0] in ("throw", "GGML_ABORT"):  # such a model is refused for another reason
            return when
        if tokens[0] == "LLAMA_LOAD_LOCALS":
            for name in ("n_layer", "n_layer_all", "n_layer_nextn", "n_head", "n_head_kv", "n_embd", "n_embd_k_gqa", "n_embd_v_gqa", "n_embd_head_k",
                         "n_embd_head_v", "n_ff", "n_vocab", "n_token_types", "n_rot", "n_expert", "n_expert_used", "n_ctx_train"):
                scope.own(name, ("name", name, None))
            scope.own("n_embd_gqa", ("name", "n_embd_v_gqa", None))
            return when
        if "=" in tokens or "|=" in tokens:
            op = "=" if "=" in tokens else "|="
            at = tokens.index(op)
            left, right = tokens[:at], tokens[at + 1:]
            if right and right[0] == "[":  # a lambda
                end = blocks(right, 0, "]")
                close = blocks(right, end, ")")
                parameters = [p[-1] for p in split(right[end + 1:close - 1], ",") if p]
                body = right[right.index("{", close):]
                self.lambdas[left[-1]] = (parameters, sequence(body)[0])
                return when
            name = "layer." + ".".join(t for t in left[2:] if t != ".") if left[0] == "layer" and len(left) > 2 and left[1] == "." else left[-1]
            if left[0] == "layers" and "." in left:
                name = "layer." + ".".join(t for t in left[left.index(".") + 1:] if t != ".")
            if right and right[0] == "create_tensor":
                value = self.create(right, scope, when, layers)
            elif '"' in "".join(right) and (text := tensor_text(right, scope)):
                value = ("text", text)
            else:
                if op == "|=":
                    right = left + ["|"] + ["("] + right + [")"]
                value = self.expression(right, scope)
                if "create_tensor" in right:
                    print(f"{self.arch}: not understood: {' '.join(tokens)[:120]}", file=sys.stderr)
                if right == ["nullptr"]:
                    return when
            if len(left) > 1 and left[0] not in ("layer", "layers") or name.startswith("layer."):
                scope.own(name, value) if not name.startswith("layer.") else scope.assign(name, value)
            else:
                scope.assign(name, value)
            return when
        if tokens[0] in ("int", "int64_t", "uint32_t", "auto", "bool") and len(tokens) == 2:
            scope.own(tokens[1], UNKNOWN)
            return when
        if tokens[0] == "create_tensor":
            self.create(tokens, scope, when, layers)
        elif tokens[0] in ("create_tensor_qkv", "create_tensor_gate_up_exps"):
            self.create_several(tokens, scope, when, layers)
        elif tokens[0] in self.lambdas:
            parameters, body = self.lambdas[tokens[0]]
            inner = Scope(scope)
            for name, value in zip(parameters, split(tokens[2:-1], ",")):
                inner.own(name, Expressions(value, scope).parse())
            self.step(body, inner, when, layers)
        elif "create_tensor" in tokens:
            print(f"{self.arch}: not understood: {' '.join(tokens)[:120]}", file=sys.stderr)
        return when

    def create(self, tokens, scope, when, layers):
        end = blocks(tokens, 1, ")")
        arguments = split(tokens[2:end - 1], ",")
        if end != len(tokens):
            return UNKNOWN
        if arguments[0] == ["ml"]:
            arguments = arguments[1:]
        name = tensor_text(arguments[0], scope)
        shape = [self.expression(d, scope) for d in split(arguments[1][1:-1], ",")]
        flags = self.expression(arguments[2], scope) if len(arguments) > 2 else UNKNOWN
        if name is None:
            print(f"{self.arch}: not understood: {' '.join(tokens)[:120]}", file=sys.stderr)
            return UNKNOWN
        self.add(name, shape, flags, when, layers)
        return ("has", name)

    def create_several(self, tokens, scope, when, layers):
        arguments = [self.expression(a, scope) if a != ["layer"] else None for a in split(tokens[2:-1], ",")]
        layer, sizes, flags = arguments[1], arguments[2:-1], arguments[-1]
        if tokens[0] == "create_tensor_gate_up_exps" and len(arguments) == 5 or tokens[0] == "create_tensor_qkv" and len(arguments) == 6:
            sizes, flags = arguments[2:], number(0)
        name = "blk.{" + text_of(layer) + "}."
        optional = number(1)
        if tokens[0] == "create_tensor_qkv":
            n_embd, q, k, v = sizes
            total = simple(("+", simple(("+", q, k)), v))
            fused = name + "attn_qkv.weight"
            self.add(fused, [n_embd, total], optional, when, layers)
            self.add(name + "attn_qkv.bias", [total], optional, when, layers)
            separate = simple(("&&", when, ("!", ("has", fused))))
            for part, size in (("q", q), ("k", k), ("v", v)):
                self.add(f"{name}attn_{part}.weight", [n_embd, size], flags, separate, layers)
                self.add(f"{name}attn_{part}.bias", [size], optional, when, layers)
        else:
            n_embd, n_ff, n_expert = sizes
            fused = name + "ffn_gate_up_exps.weight"
            self.add(fused, [n_embd, simple(("*", n_ff, number(2))), n_expert], optional, when, layers)
            separate = simple(("&&", when, ("!", ("has", fused))))
            for part in ("gate", "up"):
                self.add(f"{name}ffn_{part}_exps.weight", [n_embd, n_ff, n_expert], flags, separate, layers)

    def add(self, name, shape, flags, when, layers):
        if truth(when) is False or truth(flag(flags, 2)) is True:
            return
        optional = flag(flags, 1)
        if truth(flag(flags, 4)) is not False:  # skipped
            optional = simple(("||", optional, flag(flags, 4)))
        if layers and "{" not in name:  # once for all layers
            duplicated = flag(flags, 2)
            if truth(optional) is not True and duplicated == number(0):
                optional = UNKNOWN
            layers = None
            if "i" in re.findall(r"\w+", text_of(when)):
                when = UNKNOWN
            if any("i" in re.findall(r"\w+", text_of(d)) for d in shape):
                shape = [UNKNOWN] * len(shape)
        if "{" in name.replace("{i}", ""):
            return
        if layers == ("?", "?"):
            return
        reshape = truth(flag(flags, 16)) is not False
        presence = "required" if truth(optional) is False else "optional" if truth(optional) is True or optional == UNKNOWN else \
            "optional if " + text_of(optional)
        sizes = " * ".join(text_of(d, 7) for d in shape) if reshape else ", ".join(text_of(d) for d in shape)
        condition = "-" if truth(when) is True else text_of(when)
        for short in ("no_trunk", "no_nextn"):
            presence, condition = (t.replace(dict(GENERAL)[short], short) for t in (presence, condition))
        row = (name, sizes, "-" if not layers else f"{layers[0]}..{layers[1]}", presence, condition)
        if row not in self.rows:
            self.rows.append(row)


class Scope:
    def __init__(self, parent=None):
        self.parent, self.own_values, self.changed = parent, {}, {}

    def __contains__(self, name):
        return name in self.own_values or name in self.changed or (self.parent is not None and name in self.parent)

    def __getitem__(self, name):
        if name in self.own_values:
            return self.own_values[name]
        if name in self.changed:
            return self.changed[name]
        return self.parent[name]

    def get(self, name, default=None):
        return self[name] if name in self else default

    def own(self, name, value):
        self.own_values[name] = value

    def assign(self, name, value):
        if name in self.own_values or self.parent is None:
            self.own_values[name] = value
        else:
            self.changed[name] = value

    def outer_changes(self):
        return self.changed


# ---- numbers
# Accessors of llama_hparams and values of the loader that every architecture has; `i` is the layer.
GENERAL = [
    ("n_vocab", "length(tokenizer.ggml.tokens, key(vocab_size))"),
    ("n_token_types", "key(tokenizer.ggml.token_type_count, 0)"),
    ("n_ctx_train", "key(context_length)"),
    ("n_embd", "key(embedding_length)"),
    ("n_embd_out", "key(embedding_length_out, n_embd)"),
    ("n_layer_all", "key(block_count)"),
    ("n_layer_nextn", "key(nextn_predict_layers, 0)"),
    ("n_layer", "n_layer_all - n_layer_nextn"),
    ("no_trunk", "n_layer_nextn > 0 && !has(blk.0.attn_norm.weight)"),
    ("no_nextn", "n_layer_nextn > 0 && !has(blk.{n_layer}.nextn.eh_proj.weight)"),
    ("has_nextn", "has(blk.{n_layer}.nextn.eh_proj.weight) || has(blk.{n_layer}.attn_norm.weight)"),
    ("n_expert", "key(expert_count, 0)"),
    ("n_expert_used", "key(expert_used_count, 0)"),
    ("n_ff", "key(feed_forward_length, 0)"),
    ("n_head", "key(attention.head_count, 0)"),
    ("n_head_kv", "key(attention.head_count_kv, n_head[i])"),
    ("n_embd_head_k_full", "key(attention.key_length, n_embd / n_head[0])"),
    ("n_embd_head_v_full", "key(attention.value_length, n_embd / n_head[0])"),
    ("n_embd_head_k_swa", "key(attention.key_length_swa, n_embd_head_k_full)"),
    ("n_embd_head_v_swa", "key(attention.value_length_swa, n_embd_head_v_full)"),
    ("n_rot_full", "key(rope.dimension_count, n_embd_head_k_full)"),
    ("n_rot_swa", "key(rope.dimension_count_swa, n_rot_full)"),
    ("is_swa", "list(attention.sliding_window_pattern)"),
    ("is_recr", "list(attention.recurrent_layers)"),
    ("n_embd_head_k", "is_swa[i] ? n_embd_head_k_swa : n_embd_head_k_full"),
    ("n_embd_head_v", "is_swa[i] ? n_embd_head_v_swa : n_embd_head_v_full"),
    ("n_rot", "is_swa[i] ? n_rot_swa : n_rot_full"),
    ("n_embd_k_gqa", "n_embd_head_k[i] * n_head_kv[i]"),
    ("n_embd_v_gqa", "n_embd_head_v[i] * n_head_kv[i]"),
    ("is_mla", "n_embd_head_k_mla_set != 0 && n_embd_head_v_mla_set != 0"),
    ("n_embd_head_k_mla_set", "key(attention.key_length_mla, 0)"),
    ("n_embd_head_v_mla_set", "key(attention.value_length_mla, 0)"),
    ("n_embd_head_k_mla", "is_mla ? n_embd_head_k_mla_set : n_embd_head_k"),
    ("n_embd_head_v_mla", "is_mla ? n_embd_head_v_mla_set : n_embd_head_v"),
    ("n_embd_inp", "n_embd_inp_set > 0 ? n_embd_inp_set : n_embd + n_embd * n_deepstack_layers"),
    ("n_embd_inp_enc", "n_embd_inp_enc_set > 0 ? n_embd_inp_enc_set : n_embd_inp"),
    ("n_embd_inp_set", "0"),
    ("n_embd_inp_enc_set", "0"),
    ("n_deepstack_layers", "key(n_deepstack_layers, 0)"),
    ("n_cls_out", "length(classifier.output_labels, 1)"),
    ("n_ff_exp", "key(expert_feed_forward_length, 0)"),
]
# Where load_arch_hparams() computes a value.
COMPUTED = {
    ("jamba", "is_recr"): "n_head_kv[i] == 0",
    ("qwen3next", "is_recr"): "list(attention.recurrent_layers, i < n_layer && (i + 1) % key(full_attention_interval, 4) != 0)",
    ("qwen35", "is_recr"): "list(attention.recurrent_layers, i < n_layer && (i + 1) % key(full_attention_interval, 4) != 0)",
    ("qwen35moe", "is_recr"): "list(attention.recurrent_layers, i < n_layer && (i + 1) % key(full_attention_interval, 4) != 0)",
    ("lfm2", "is_recr"): "n_head_kv[i] == 0",
    ("lfm2moe", "is_recr"): "n_head_kv[i] == 0",
    ("granitehybrid", "is_recr"): "n_head_kv[i] == 0",
    ("kimi-linear", "is_recr"): "n_head_kv[i] == 0",
    ("plamo2", "is_recr"): "n_head_kv[i] == 0",
    ("nemotron_h", "is_recr"): "n_head_kv[i] == 0 && n_ff[i] == 0",
    ("nemotron_h_moe", "is_recr"): "n_head_kv[i] == 0 && n_ff[i] == 0",
    ("wavtokenizer-dec", "n_embd"): "key(features_length)",
    ("wavtokenizer-dec", "n_embd_out"): "key(embedding_length)",
    ("wavtokenizer-dec", "posnet_n_embd"): "key(posnet.embedding_length)",
    ("wavtokenizer-dec", "posnet_n_layer"): "key(posnet.block_count)",
    ("wavtokenizer-dec", "convnext_n_embd"): "key(convnext.embedding_length)",
    ("wavtokenizer-dec", "convnext_n_layer"): "key(convnext.block_count)",
    ("hunyuan_vl", "n_expert"): "key(expert_count, 0) <= 1 ? 0 : key(expert_count, 0)",
    ("hunyuan-dense", "n_expert"): "key(expert_count, 0) <= 1 ? 0 : key(expert_count, 0)",
    ("lfm2", "n_layer_dense_lead"): "n_layer",
    ("bailingmoe3", "n_ff_shexp"): "key(expert_shared_feed_forward_length, n_ff_exp * max(1, key(expert_shared_count, 0)))",
    ("laguna", "n_ff_shexp"): "key(expert_shared_feed_forward_length, n_ff_exp)",
    ("gemma4", "has_kv"): "i < n_layer - key(attention.shared_kv_layers, 0)",
    ("t5", "dec_n_layer"): "key(decoder_block_count, n_layer)",
}


def numbers_of(arch, function, used):
    """Returns the definitions of the values in `used` that load_arch_hparams() reads from keys, and those that it does not know."""
    result = []
    known = dict(GENERAL)
    for name in used:
        if (arch, name) in COMPUTED:
            result.append((name, COMPUTED[arch, name]))
            continue
        fields = [name, name.removesuffix("_set") + "_impl", name + "_arr"]
        reads, others = [], []
        for each in re.finditer(r"ml\.(?:get_key|get_key_or_arr|get_arr)\s*\(\s*(LLM_KV_\w+)\s*,\s*hparams\.(\w+)\s*(?:,([^;]*))?\)\s*(;|\)|\|\|)", function):
            if each[2] in fields:
                reads.append((each[1], each[3] or ""))
        reads = list(dict(reads).items())
        for each in re.finditer(r"hparams\.(\w+)(?:\[[^\]]*\])?\s*([|+*/-]?=)(?!=)\s*([^;]*);", function):
            if each[1] in fields:
                others.append((each[2], each[3]))
        for each in re.finditer(r"(set_swa_pattern|set_recr_pattern|load_swa_pattern)", function):
            if (each[1] == "set_recr_pattern") == (name == "is_recr") and name in ("is_swa", "is_recr"):
                others.append(("call", each[1]))
        if name in ("is_swa", "is_recr"):
            continue
        if len(reads) == 1 and not others:
            key = KEYS[reads[0][0]]
            if name in known and f"key({key}" in known[name]:
                continue
            default = known[name] if name in known else next((DEFAULTS[f] for f in fields if f in DEFAULTS), "0")
            result.append((name, f"key({key}, {default})"))
        elif reads and all(re.fullmatch(r"\d+", value) for _, value in others) and len(others) == 1 and len(reads) == 1:
            result.append((name, f"key({KEYS[reads[0][0]]}, {others[0][1]})"))
        elif reads or others:
            result.append((name, "?"))
        elif name not in known:
            result.append((name, next((DEFAULTS[f] for f in fields if f in DEFAULTS), "?")))
    return result


# Golden data holds models whose converter wrote them without these tensors, which the loader does not load: their absence
# is only reported.
OMITTED = {
    "cogvlm": r"vis_", "dflash": r"_conv_(base|proj)", "phimoe": r"(attn_output|norm)\.bias", "jais2": r"\.bias", "bert": r"norm\.bias",
    "jina-bert-v2": r"attn_output_norm",
}
# And of these in other shapes, because a size in the loader is a constant or another key: marked with `~`.
ODD = {
    "arctic": r"ffn_(gate|up|down)", "arwkv7": r"time_mix", "falcon": r"ffn_", "phi2": r"ffn_", "dflash": r"conv|markov|conf|token_embd|output", "dots1": r"attn_[kv]\.",
    "ernie4_5-moe": r"shexp", "exaone4": r"attn_output\.", "gemma3n": r".", "granite": r"ffn_", "granitehybrid": r"ffn_", "hy_v4": r"hc_", "kimi-k3": r".",
    "minimax-m2": r"_exps|_norm", "olmoe": r"attn_[qk]_norm|_exps", "phimoe": r"_exps", "plamo": r"attn_[kv]\.", "plamo2": r"ssm_", "qwen4exp": r"hc_|nextn", "wavtokenizer-dec": r".",
    "*": r"nextn\.(embed_tokens|shared_head_head)|^cls\.",
}


def listed(table, arch, name):
    return any(re.search(table[a], name) for a in (arch, "*") if a in table)


# Biases that the loader reads if they are there, but every model of the architecture has.
EXPECTED = {
    **dict.fromkeys(("qwen2", "qwen2vl", "qwen2moe", "dream"), r"attn_[qkv]\.bias"),
    "bert": r"(attn_[qkv]|attn_output|ffn_(up|down))\.bias",
}


def lenient(arch, row):
    if row[3] == "optional" and re.search(EXPECTED.get(arch, "$^"), row[0]):
        fused = "!has(blk.{i}.attn_qkv.weight)"
        return row[:3] + ("expected", fused if row[4] == "-" and re.search("attn_[qkv]", row[0]) else row[4])
    presence = "expected" if row[3] == "required" and listed(OMITTED, arch, row[0]) else row[3]
    return (row[0], "~ " * listed(ODD, arch, row[0]) + row[1], row[2], presence, row[4])


# ---- files
def body_of(text, start):
    tokens_start = text.index("{", start)
    depth, at = 0, tokens_start
    while True:
        depth += text[at] == "{"
        depth -= text[at] == "}"
        at += 1
        if depth == 0:
            return text[tokens_start + 1:at - 1]


def main():
    source = Path(sys.argv[1]) / "src"
    strip = lambda text: re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)  # noqa: E731
    table = strip((source / "llama-arch.cpp").read_text())
    for name, text in re.findall(r'\{\s*(LLM_TENSOR_\w+),\s*"([^"]*)"\s*\}', table):
        NAMES[name] = text
    for name, text in re.findall(r'\{\s*(LLM_KV_\w+),\s*"([^"]*)"\s*\}', table):
        KEYS[name] = text.removeprefix("%s.")
    for name, text in re.findall(r"^\s*(?:uint32_t|int32_t|bool)\s+(\w+)\s*=\s*(\w+);", strip((source / "llama-hparams.h").read_text()), re.M):
        DEFAULTS[name] = {"false": "0", "true": "1"}.get(text, text)
    archs = {name: text for name, text in re.findall(r'\{\s*(LLM_ARCH_\w+),\s*"([^"]*)"\s*\}', table)}
    classes = dict(re.findall(r"case (LLM_ARCH_\w+):\s*return new (llama_model_\w+)", (source / "llama-model.cpp").read_text()))
    text = strip("\n".join(p.read_text() for p in sorted((source / "models").glob("*.cpp"))))
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    header = (source / "models" / "models.h").read_text()
    parents = dict(re.findall(r"struct (llama_model_\w+) : public (llama_model_\w+)", header))

    def function(kind, cls):
        while cls:
            if found := re.search(rf"void {cls}::{kind}\s*\([^)]*\)\s*\{{", text):
                return body_of(text, found.start())
            cls = parents.get(cls)
        return ""

    print("# Tensors that the loader of the llama.cpp in configs/upstream.yaml expects of each architecture, from its load_arch_tensors() and\n"
          "# load_arch_hparams(). Written by tests/upstream/loader.py; do not edit. Two kinds of lines:\n"
          "# - numbers: `NAME = expression`. key(KEY, default) is the value of ARCHITECTURE.KEY, of layer i if it is a list; list(KEY) likewise, but\n"
          "#   only if it is a list; length(KEY, default) is the length of one; has(TENSOR) is 1 if the model has it. NAME[n] is the value for\n"
          "#   layer n, NAME that for layer 0. Architecture `*`: for all that do not define NAME.\n"
          "# - tensors: the shape, in GGUF's order, as products if only the number of elements counts; the layers; whether it must be present\n"
          "#   (expected: its absence is only reported; ~: so is another shape, if all layers have it); the condition under which the line applies. {i} in a name is the layer.\n"
          "#   `?` is not known: it decides nothing.\n"
          "architecture\ttensor\tshape\tlayers\tpresence\twhen")
    for name, value in GENERAL:
        print(f"*\t{name} =\t{value}")
    for identifier, arch in archs.items():
        cls = classes.get(identifier)
        if not cls:
            continue
        body = function("load_arch_tensors", cls)
        if not body.strip():
            print(f"{arch}: no load_arch_tensors", file=sys.stderr)
            continue
        loader = Loader(identifier)
        try:
            loader.run(sequence(TOKEN.findall(body)), Scope(), number(1), None)
        except (IndexError, KeyError, ValueError) as error:
            print(f"{arch}: {error!r}", file=sys.stderr)
            raise
        if not loader.rows:
            print(f"{arch}: no tensors", file=sys.stderr)
            continue
        used = set()
        for row in loader.rows:
            for cell in (row[1], row[2], row[3].removeprefix("optional if "), row[4]):
                used |= set(re.findall(r"[A-Za-z_]\w*", re.sub(r"has\([^)]*\)|optional|required", "", cell)))
        known = dict(GENERAL)
        used -= {"i", "max", "has", "key"}
        while True:
            more = set()
            for name in used:
                definition = COMPUTED.get((arch, name), known.get(name, ""))
                more |= {n for n in re.findall(r"[a-z_]\w*", re.sub(r"(key|list|length)\([\w.]+", "", definition))
                         if n in known or (arch, n) in COMPUTED}
            if more <= used:
                break
            used |= more
        hparams = function("load_arch_hparams", cls)
        for name, value in numbers_of(arch, hparams, sorted(used)):
            print(f"{arch}\t{name} =\t{value}")
        for row in loader.rows:
            print("\t".join((arch,) + lenient(arch, row)))


if __name__ == "__main__":
    main()
