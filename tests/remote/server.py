#!/usr/bin/env python3
"""A server that behaves well or badly, for remote_test.cpp.

    server.py ROOT [CERTIFICATE KEY]

Serves the files of ROOT on two ports (two origins) until its standard input ends; prints the ports as a line. With a
certificate the first port is HTTPS, the second plain HTTP. ROOT/log.jsonl gets a line for each request.

The first part of a path says how: see the methods of Handler that begin with `do_`. What is to fail once fails for
each range the first time that it is asked for.
"""
import datetime
import email.utils
import hashlib
import hmac
import http.server
import json
import os
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse

import bucket
import hub
import xet

ROOT = sys.argv[1]
LOCK = threading.Lock()
SEEN = {}  # number of requests by key
LOG = open(os.path.join(ROOT, "log.jsonl"), "w")
PORTS = []
S3_KEYS = {"AKIDEXAMPLE": ("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None),
           "ASIATEMPORARY": ("temporary/secret", "temporary-session-token")}
TOKEN = "hf_sEcReTtOkEnOfTheTest"


def count(key):
    with LOCK:
        SEEN[key] = SEEN.get(key, 0) + 1
        return SEEN[key]


def modified_of(path):
    return email.utils.formatdate(int(os.path.getmtime(path)), usegmt=True)


class Handler(hub.HubRequests, xet.XetRequests, bucket.BucketRequests, http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = bucket.Store(ROOT)
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def log_line(self, line):
        with LOCK:
            LOG.write(json.dumps(line) + "\n")
            LOG.flush()

    def do_GET(self):
        self.log_line({"port": self.server.server_address[1], "method": self.command, "path": self.path,
                       "headers": {k.lower(): v for k, v in self.headers.items()}})
        parts = urllib.parse.urlsplit(self.path)
        self.name = urllib.parse.unquote(parts.path)
        self.query = parts.query
        mode, _, self.rest = self.name.lstrip("/").partition("/")
        method = getattr(self, "do_" + mode, None) or self.hub_or_bucket
        try:
            method()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET

    # ---- building blocks of responses ----

    def refuse(self, status, headers=(), body=b"<html>no</html>"):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.write_body(body)

    def write_body(self, body):
        """An answer to HEAD has none."""
        if self.command != "HEAD":
            self.wfile.write(body)

    def redirect(self, location, status=302, headers=()):
        self.refuse(status, [("Location", location), *headers])

    def other(self, path):
        """A URL of the other port."""
        port = PORTS[1] if self.server.server_address[1] == PORTS[0] else PORTS[0]
        return f"http://localhost:{port}{path}"

    def asked(self, size):
        """The first and last byte that are asked for, or None."""
        header = self.headers.get("Range")
        if not header:
            return None
        first, last = header.removeprefix("bytes=").split("-")
        return int(first), min(int(last), size - 1) if last else size - 1

    def file(self, name):
        path = os.path.join(ROOT, name)
        return path if os.path.isfile(path) else None

    def serve(self, name, *, etag="strong", total=None, shift=0, extra=(), send=None, length=None, ranges=True,
              coding=None):
        """The part of a file that is asked for. send: how many bytes of it before the connection ends."""
        path = self.file(name)
        if not path:
            return self.refuse(404)
        size = os.path.getsize(path)
        asked = self.asked(size) if ranges else None
        tag = '"%s"' % hashlib.sha256(f"{name} {size} {os.path.getmtime(path)}".encode()).hexdigest()[:16]
        headers = list(extra)
        if etag == "strong":
            headers.append(("ETag", tag))
        elif etag == "weak":
            headers.append(("ETag", "W/" + tag))
        elif etag and etag not in ("time",):
            headers.append(("ETag", etag))
        if etag in ("weak", "time"):
            headers.append(("Last-Modified", modified_of(path)))
        if coding:
            headers.append(("Content-Encoding", coding))
        if asked and asked[0] >= size:
            return self.refuse(416, [("Content-Range", f"bytes */{size}"), *headers])
        first, last = asked or (0, size - 1)
        self.send_response(206 if asked else 200)
        for header in headers:
            self.send_header(*header)
        if asked:
            self.send_header("Content-Range", f"bytes {first + shift}-{last + shift}/{total or size}")
        count = last - first + 1
        self.send_header("Content-Length", str(length if length is not None else count))
        self.end_headers()
        if self.command == "HEAD":
            return
        left = count if send is None else min(send, count - 1)
        with open(path, "rb") as file:
            if not self.server.tls:
                self.wfile.flush()
                if left:
                    self.connection.sendfile(file, first, left)
            else:
                file.seek(first)
                while left:
                    piece = file.read(min(left, 1 << 20))
                    self.wfile.write(piece)
                    left -= len(piece)
        if send is not None:
            self.close_connection = True

    def is_first(self):
        """Return True if this range, or the rest of it, is requested for the first time."""
        return count((self.name, self.headers.get("Range", "").split("-")[-1])) == 1

    # ---- servers that work ----

    def do_plain(self):
        self.serve(self.rest)

    def do_weak(self):
        self.serve(self.rest, etag="weak")

    def do_time(self):
        self.serve(self.rest, etag="time")

    def do_redirect(self):
        self.redirect(self.other("/signed/" + self.rest + "?signature=vErYsEcReTsIgNaTuRe"))

    def do_signed(self):
        if self.query != "signature=vErYsEcReTsIgNaTuRe":
            return self.refuse(403)
        self.serve(self.rest)

    def do_expiring(self):
        number = count("expiring")
        self.redirect(self.other(f"/expires/{number}/{self.rest}?signature=vErYsEcReTsIgNaTuRe"), status=307)

    def do_expires(self):
        number, _, name = self.rest.partition("/")
        if count("expires " + number) > 3:
            return self.refuse(403)
        self.serve(name)

    # ---- servers that fail once ----

    def do_busy429(self):
        self.refuse(429, [("Retry-After", "1")]) if self.is_first() else self.serve(self.rest)

    def do_busy503(self):
        self.refuse(503) if self.is_first() else self.serve(self.rest)

    def do_short(self):
        self.serve(self.rest, send=100 if self.is_first() else None)

    def do_reset(self):
        if not self.is_first():
            return self.serve(self.rest)
        self.serve(self.rest, send=50)
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def do_stall(self):
        if not self.is_first():
            return self.serve(self.rest)
        self.serve(self.rest, send=10)
        self.wfile.flush()
        time.sleep(5)

    def do_trickle(self):
        """Faster than a server that stalls, but the file would take hours."""
        size = os.path.getsize(os.path.join(ROOT, self.rest))
        first, last = self.asked(size)
        self.send_response(206)
        self.send_header("ETag", '"trickle"')
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        for _ in range(200):
            self.wfile.write(bytes(400))
            time.sleep(0.1)
        self.close_connection = True

    def do_silent(self):
        time.sleep(20)

    # ---- servers that fail ----

    def do_dies(self):
        """The last quarter of the file is not to be had until there is a file `healed`."""
        size = os.path.getsize(os.path.join(ROOT, self.rest))
        if self.asked(size)[0] > size // 4 * 3 and not self.file("healed"):
            return self.refuse(429, [("Retry-After", "20000")])
        self.serve(self.rest)

    def do_always503(self):
        self.refuse(503)

    def do_later(self):
        self.refuse(429, [("Retry-After", "20000")])

    def do_denied(self):
        self.refuse(403)

    def do_norange(self):
        self.serve(self.rest, ranges=False)

    def do_nothing(self):
        self.serve(self.rest, etag=None)

    def do_gzip(self):
        self.serve(self.rest, coding="gzip")

    def do_changed(self):
        """/changed/N/K/FILE: another version after N answers to K."""
        number, _, name = self.rest.split("/", 2)
        self.serve(name, etag='"first"' if count(self.name) <= int(number) else '"second"')

    def do_longer(self):
        """Another length after N answers."""
        number, _, name = self.rest.split("/", 2)
        self.serve(name, total=None if count(self.name) <= int(number) else 1 << 40)

    def do_shifted(self):
        number, _, name = self.rest.split("/", 2)
        self.serve(name, shift=0 if count(self.name) <= int(number) else -1)

    def do_wronglength(self):
        number, _, name = self.rest.split("/", 2)
        self.serve(name, length=None if count(self.name) <= int(number) else 7, send=None)

    def do_loop(self):
        self.redirect("/loop/" + self.rest)

    def do_interim(self):
        """Interim answers (103 Early Hints), without end."""
        while True:
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n" * 100)

    def do_headers(self):
        """Headers without end."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            self.wfile.write(b"X-More: yes\r\n" * 100)

    def do_hints(self):
        """A few interim answers, then the file."""
        self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n" * 3)
        self.serve(self.rest)

    def do_ftp(self):
        self.redirect("ftp://localhost/" + self.rest)

    def do_downgrade(self):
        self.redirect(f"http://localhost:{PORTS[1]}/plain/{self.rest}")

    # ---- a hub, and buckets ----

    def hub_or_bucket(self):
        if self.hub_xet() or self.hub_upload():
            return None
        is_signed = self.headers.get("Authorization", "").startswith("AWS4-HMAC-SHA256")
        if is_signed or self.command not in ("GET", "HEAD") or self.name.startswith("/public-"):
            return self.bucket()
        parts = self.name.lstrip("/").split("/")
        if parts[:2] == ["api", "models"] and parts[4:5] == ["revision"]:
            return self.model(parts[2], parts[3], parts[5])
        if parts[2:3] == ["resolve"]:
            return self.resolve(parts[0], parts[1], parts[3], "/".join(parts[4:]))
        self.refuse(404)

    def is_let_in(self, organization):
        if organization != "private" or self.headers.get("Authorization") == "Bearer " + TOKEN:
            return True
        self.refuse(401, [("X-Error-Message", "no " + self.headers.get("Authorization", "token"))])
        return False

    def commit_of(self, folder, revision):
        try:
            with open(os.path.join(ROOT, folder, "refs.json")) as file:
                return json.load(file).get(revision, revision)
        except FileNotFoundError:
            return revision

    def model(self, organization, name, revision):
        if not self.is_let_in(organization):
            return
        folder = f"hub/{organization}/{name}"
        commit = self.commit_of(folder, revision)
        top = os.path.join(ROOT, folder, commit)
        if not os.path.isdir(top):
            return self.refuse(404)
        files = [os.path.relpath(os.path.join(at, file), top) for at, _, names in os.walk(top) for file in names]
        body = json.dumps({"sha": commit, "siblings": [{"rfilename": file} for file in files]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.write_body(body)

    def resolve(self, organization, name, revision, file):
        if not self.is_let_in(organization):
            return
        folder = f"hub/{organization}/{name}"
        commit = self.commit_of(folder, revision)
        path = f"{folder}/{commit}/{file}"
        headers = [("X-Repo-Commit", commit)]
        if self.file(path + ".xet"):
            return self.resolve_xet(f"{organization}/{name}", path + ".xet", headers)
        if not self.file(path):
            return self.refuse(404)
        if not file.endswith((".safetensors", ".gguf")):
            return self.serve(path, extra=headers, ranges=not file.endswith(".txt"))
        with open(os.path.join(ROOT, path), "rb") as content:
            digest = hashlib.file_digest(content, "sha256") if hasattr(hashlib, "file_digest") else hashlib.sha256(
                content.read())
        headers += [("X-Linked-ETag", f'"{digest.hexdigest()}"')]
        self.redirect(self.other(f"/signed/{urllib.parse.quote(path)}?signature=vErYsEcReTsIgNaTuRe"), headers=headers)

    def signature_problem(self, body):
        """Signature version 4, recomputed from the request. Source: AWS General Reference."""
        if not self.headers.get("Authorization", "").startswith("AWS4-HMAC-SHA256 "):
            return "no signature"
        fields = dict(item.strip().split("=", 1) for item in self.headers["Authorization"].split(" ", 1)[1].split(","))
        key, date, region, service, end = fields["Credential"].split("/")
        if key not in S3_KEYS or service != "s3" or end != "aws4_request":
            return "another key or service"
        secret, token = S3_KEYS[key]
        if self.headers.get("X-Amz-Security-Token") != token:
            return "another session token"
        when = self.headers.get("X-Amz-Date", "")
        sent = datetime.datetime.strptime(when, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if abs((datetime.datetime.now(datetime.timezone.utc) - sent).total_seconds()) > 900 or not when.startswith(date):
            return "another time"
        signed = fields["SignedHeaders"].split(";")
        needed = {"host", "x-amz-date", "x-amz-content-sha256"} | ({"x-amz-security-token"} if token else set())
        if "Content-MD5" in self.headers:
            needed.add("content-md5")
        if not needed <= set(signed):
            return "headers that are not signed"
        digest = self.headers.get("X-Amz-Content-Sha256")
        if digest != "UNSIGNED-PAYLOAD" and digest != hashlib.sha256(body).hexdigest():
            return "another body"
        headers = "".join(f"{name}:{' '.join(self.headers[name].split())}\n" for name in signed)
        path, _, query = self.path.partition("?")
        query = "&".join(sorted(item if "=" in item else item + "=" for item in query.split("&") if item))
        request = "\n".join([self.command, path, query, headers, ";".join(signed), digest])
        scope = f"{date}/{region}/{service}/{end}"
        text = "\n".join(["AWS4-HMAC-SHA256", when, scope, hashlib.sha256(request.encode()).hexdigest()])
        mac = ("AWS4" + secret).encode()
        for part in (date, region, service, end, text):
            mac = hmac.new(mac, part.encode(), hashlib.sha256).digest()
        return None if mac.hex() == fields["Signature"] else "another signature"


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
    tls = False

    def handle_error(self, *_):
        pass


def main():
    servers = [Server(("127.0.0.1", 0), Handler) for _ in range(2)]
    PORTS.extend(server.server_address[1] for server in servers)
    if len(sys.argv) > 3:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        servers[0].socket = context.wrap_socket(servers[0].socket, server_side=True, do_handshake_on_connect=False)
        servers[0].tls = True
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(*PORTS, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
