"""Serves one file of the hub's content store to this machine, by ranges, with hf_xet: the hub itself does not offer its bytes.

Arguments: the URL that gives access to the store, the file's hash there, and its size. Environment: HF_TOKEN, unless the file is
public. Prints the address, and the token that requests must have. Exit code 3: hf_xet is missing, or too old.
"""
import http.server
import os
import re
import secrets
import socketserver
import sys

sys.path[:] = filter(None, sys.path)  # not the current folder
try:
    import hf_xet

    hf_xet.XetDownloadStreamGroup
except (ImportError, AttributeError):
    sys.exit(3)

url, name, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
secret, token = secrets.token_urlsafe(), os.environ.get("HF_TOKEN")
headers = {"Authorization": "Bearer " + token} if token else None


def reason_of(error):
    """Its text in one line, without the token."""
    return " ".join(str(error).replace(token or "\0", "***").encode("ascii", "replace").decode().split())


try:
    group = hf_xet.XetSession().new_download_stream_group(token_refresh_url=url, token_refresh_headers=headers)
except Exception as error:  # whatever the library raises is the reason for the user
    sys.exit(reason_of(error))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def refuse(self, status, reason=""):
        self.send_response(status)
        self.send_header("X-Reason", reason[:200])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if self.headers.get("Authorization") != "Bearer " + secret:
            return self.refuse(403)
        if not asked or int(asked[1]) >= size:
            return self.refuse(416)
        begin, end = int(asked[1]), min(int(asked[2]) + 1, size)
        try:
            pieces = group.download_stream(hf_xet.XetFileInfo(name, size), start=begin, end=end)
            first = next(iter(pieces), b"")
            if not first:
                return self.refuse(503, "no bytes")
        except Exception as error:  # of the library; the reader tries again
            return self.refuse(503, reason_of(error))
        self.send_response(206)
        for header, text in (("ETag", f'"{name}"'), ("Content-Range", f"bytes {begin}-{end - 1}/{size}"), ("Content-Length", str(end - begin))):
            self.send_header(header, text)
        self.end_headers()
        try:
            self.wfile.write(first)
            for piece in pieces:
                self.wfile.write(piece)
        except Exception:  # the reader sees that bytes are missing
            self.close_connection = True


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


with Server(("127.0.0.1", 0), Handler) as server:
    print(f"http://127.0.0.1:{server.server_address[1]}/", secret, flush=True)
    server.serve_forever()
