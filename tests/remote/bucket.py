"""The buckets of server.py, which can be written to: objects, multipart uploads, and faults.

A bucket is a folder ROOT/s3/BUCKET, an object a file in it. ROOT/uploads.txt lists the uploads that are neither
complete nor aborted, a line for each and a line for each of its parts. The name of a bucket that begins with `old-` has
no conditional writes; one that begins with `writeonly-` cannot be read.

ROOT/fault, if it exists, says what goes wrong: "NAME K" or "NAME K N" or "NAME K N KIND" does it with the requests K to
K + N - 1 (N is 1 if it is missing) that buckets get after the file has been written; only those of a kind are counted if
one is given (see `kind_of`). ROOT/happened then appears. The names are those in `Faults.NAMES`.
"""
import base64
import binascii
import datetime
import hashlib
import os
import re
import shutil
import socket
import struct
import threading
import urllib.parse
import uuid
from xml.sax.saxutils import escape

LEAST_PART = 5 << 20


class Faults:
    # 500, 503: refused before anything is done. lost: done, but the connection ends without an answer. reset: the
    # connection is reset before the request is read. half: done, but the answer is cut off. damaged: a byte of the body
    # changes on its way. late: refused after an answer 200 has begun. expired: all uploads are gone. forgotten: all
    # parts of the uploads are gone. denied, full, skew: refused for good. nolist: parts cannot be listed.
    # Successes that are none, after which nothing is done: empty, page (a web page), hidden (an error with a prefix),
    # strange (an error without a code), spaced (an error after 9 MiB of spaces), cut (a result without its end).
    # wordless, foreign: done, but the answer has nothing, or a prefix and a namespace. endless: a list of parts that
    # always has one more page; backwards: one that returns to its beginning. bare: a result without an ETag; other: one
    # that names another object; elsewhere: done, but the answer names another object. short: an object without its last
    # byte appears, and the answer has nothing; rotten: the object has another last byte.
    NAMES = ("500", "503", "lost", "reset", "half", "damaged", "late", "expired", "forgotten", "denied", "full", "skew",
             "nolist", "empty", "page", "hidden", "strange", "spaced", "cut", "wordless", "foreign", "endless",
             "backwards", "bare", "other", "elsewhere", "short", "rotten")
    NO_SUCCESS = {
        "empty": b"", "page": b"<html>Please log in<br></html>", "strange": b"<Error><Message>no</Message></Error>",
        "hidden": b'<s3:Error xmlns:s3="http://s3.example/"><s3:Code>AccessDenied</s3:Code></s3:Error>',
        "spaced": b" " * (9 << 20) + b"<Error><Code>AccessDenied</Code></Error>",
        "cut": b"<CompleteMultipartUploadResult><ETag>x",
        "bare": b"<CompleteMultipartUploadResult/>",
        "other": b"<CompleteMultipartUploadResult><Key>other</Key><ETag>x</ETag></CompleteMultipartUploadResult>"}

    def __init__(self, root):
        self.path = os.path.join(root, "fault")
        self.stamp = None
        self.count = 0
        self.lock = threading.Lock()

    def next(self, kind):
        """The fault of this request, or an empty text."""
        with self.lock:
            try:
                stamp = os.stat(self.path).st_mtime_ns
                with open(self.path) as file:
                    words = file.read().split()
            except FileNotFoundError:
                return ""
            if stamp != self.stamp:
                self.stamp, self.count = stamp, 0
            if len(words) < 2 or (len(words) > 3 and words[3] != kind):
                return ""
            self.count += 1
            if words[1].startswith("%"):  # every k-th request
                if self.count % int(words[1][1:]) != 0:
                    return ""
            else:
                first = int(words[1])
                last = first + (int(words[2]) if len(words) > 2 else 1)
                if not first <= self.count < last:
                    return ""
            with open(os.path.join(os.path.dirname(self.path), "happened"), "w"):
                return words[0]


def kind_of(method, query):
    if "uploadId" in query:
        return {"PUT": "part", "POST": "complete", "GET": "list", "DELETE": "abort"}[method]
    return "start" if "uploads" in query and method == "POST" else {"PUT": "put", "GET": "find"}.get(method, "other")


class Store:
    """The server's objects and uploads."""

    def __init__(self, root):
        self.root = os.path.join(root, "s3")
        self.uploads_file = os.path.join(root, "uploads.txt")
        self.lock = threading.RLock()
        self.uploads = {}
        self.objects = {}  # (bucket, key) -> {etag, meta}
        self.faults = Faults(root)

    def path(self, bucket, key):
        return os.path.join(self.root, bucket, key)

    def note(self):
        with open(self.uploads_file + ".new", "w") as file:
            for name, upload in self.uploads.items():
                for part in ["begun", *sorted(upload["parts"])]:
                    file.write(f"{name} s3://{upload['bucket']}/{upload['key']} {part}\n")
        os.replace(self.uploads_file + ".new", self.uploads_file)

    def new_file(self, content=b""):
        """The path of a file that has the content and no name in a bucket."""
        path = os.path.join(self.root, "..", "new-" + uuid.uuid4().hex)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def put(self, bucket, key, files, etag, meta):
        """Makes an object of files, which are removed."""
        path = self.path(bucket, key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(files[0], "ab") as whole:
            for each in files[1:]:
                with open(each, "rb") as file:
                    shutil.copyfileobj(file, whole, 1 << 20)
                os.unlink(each)
        os.replace(files[0], path)
        with open(os.path.join(self.root, "..", "types.txt"), "a") as file:
            file.write(f"{meta.get('Content-Type')} s3://{bucket}/{key}\n")
        self.objects[bucket, key] = {"etag": etag, "meta": meta}


class BucketRequests:
    """Mixed into the handler of server.py; `self.store` is a Store."""

    def reset(self):
        """Resets the connection instead of answering."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def fail(self, status, code):
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()
        self.reply(status, body, {"Content-Type": "application/xml"})

    def reply(self, status, body=b"", headers=None):
        half = self.fault == "half"
        if self.fault == "elsewhere":
            body = re.sub(rb"<Key>[^<]*</Key>", b"<Key>other</Key>", body)
        if self.fault in ("wordless", "short"):
            body, headers = b"", {}
        if self.fault == "foreign":
            body = re.sub(rb"<(/?)", rb"<\1s3:", body).replace(b">", b' xmlns:s3="http://s3.example/">', 1)
            body = b'<?xml version="1.0"?>\n' + body
        if self.fault == "lost":
            return self.reset()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) + (10 if half else 0)))
        self.end_headers()
        self.write_body(body[:len(body) // 2] if half else body)
        if half:
            self.close_connection = True

    def bucket(self):
        query = dict(urllib.parse.parse_qsl(self.query, keep_blank_values=True))
        self.fault = self.store.faults.next(kind_of(self.command, query))
        if self.fault == "reset":
            return self.reset()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        bucket, _, key = self.name.lstrip("/").partition("/")
        problem = "" if bucket.startswith("public-") else self.signature_problem(body)
        if problem:
            self.log_line({"signature": problem})
            codes = {"another key or service": "InvalidAccessKeyId", "no signature": "AccessDenied"}
            return self.fail(403, codes.get(problem, "SignatureDoesNotMatch"))
        if self.fault in ("500", "503"):
            return self.fail(int(self.fault), "InternalError" if self.fault == "500" else "SlowDown")
        if self.fault in Faults.NO_SUCCESS:
            return self.reply(200, Faults.NO_SUCCESS[self.fault])
        if self.fault == "skew":
            return self.fail(403, "RequestTimeTooSkewed")
        if self.fault == "denied":
            return self.fail(403, "AccessDenied")
        if self.fault == "nolist" and self.command == "GET" and "uploadId" in query:
            return self.fail(403, "AccessDenied")
        if self.fault == "full" and self.command in ("PUT", "POST"):
            return self.fail(403, "QuotaExceeded")
        if self.fault == "damaged" and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        if self.fault == "expired":
            with self.store.lock:
                self.store.uploads.clear()
                self.store.note()
        if self.fault == "forgotten":
            with self.store.lock:
                for upload in self.store.uploads.values():
                    upload["parts"].clear()
                self.store.note()
        if not os.path.isdir(os.path.join(self.store.root, bucket)):
            return self.fail(404, "NoSuchBucket")
        self.md5 = hashlib.md5(body).digest()
        if self.md5 != base64.b64decode(self.headers.get("Content-MD5", "")) and "Content-MD5" in self.headers:
            return self.fail(400, "BadDigest")
        is_part = self.command == "PUT" and "uploadId" in query
        self.piece = self.store.new_file(body) if is_part else None
        with self.store.lock:
            self.answer_for(bucket, key, query, body)

    def answer_for(self, bucket, key, query, body):
        if not key:
            return self.list_uploads(bucket, query)
        if self.command == "POST" and "uploads" in query:
            return self.start(bucket, key)
        if "uploadId" in query:
            upload = self.store.uploads.get(query["uploadId"])
            if not upload or (upload["bucket"], upload["key"]) != (bucket, key):
                return self.fail(404, "NoSuchUpload")
            if self.command == "PUT":
                return self.put_part(upload, int(query["partNumber"]), len(body))
            if self.command == "GET":
                return self.list_parts(upload, query)
            if self.command == "DELETE":
                del self.store.uploads[query["uploadId"]]
                self.store.note()
                return self.reply(204)
            return self.complete(query["uploadId"], upload, body)
        if self.command == "PUT":
            return self.put_object(bucket, key, body)
        if self.command == "DELETE":
            if os.path.isfile(self.store.path(bucket, key)):
                os.unlink(self.store.path(bucket, key))
            return self.reply(204)
        if bucket.startswith("writeonly-"):
            return self.fail(403, "AccessDenied")
        if not os.path.isfile(self.store.path(bucket, key)):
            return self.fail(404, "NoSuchKey")
        known = self.store.objects.get((bucket, key), {})
        if self.fault in ("lost", "half"):
            return self.reply(200, b"")
        self.serve(f"s3/{bucket}/{key}", etag=known.get("etag", "strong"),
                   extra=[*known.get("meta", {}).items(), ("Last-Modified", self.modified(bucket, key))])

    def modified(self, bucket, key):
        when = datetime.datetime.fromtimestamp(os.path.getmtime(self.store.path(bucket, key)), datetime.timezone.utc)
        return when.strftime("%a, %d %b %Y %H:%M:%S GMT")

    def meta(self):
        return {name: value for name, value in self.headers.items()
                if name.lower().startswith("x-amz-meta-") or name == "Content-Type"}

    def is_in_the_way(self, bucket, key):
        """Answers a conditional request that must not be done."""
        if "If-None-Match" not in self.headers:
            return False
        if bucket.startswith("old-"):
            self.fail(501, "NotImplemented")
            return True
        if os.path.exists(self.store.path(bucket, key)):
            self.fail(412, "PreconditionFailed")
            return True
        return False

    def put_object(self, bucket, key, body):
        if self.is_in_the_way(bucket, key):
            return
        etag = '"%s"' % self.md5.hex()
        self.store.put(bucket, key, [self.store.new_file(body)], etag, self.meta())
        self.reply(200, headers={"ETag": etag})

    def start(self, bucket, key):
        name = uuid.uuid4().hex + "/+="  # has to be encoded in queries
        self.store.uploads[name] = {"bucket": bucket, "key": key, "meta": self.meta(), "parts": {},
                                    "begun": datetime.datetime.now(datetime.timezone.utc)}
        self.store.note()
        self.reply(200, f"<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
                        f"<UploadId>{escape(name)}</UploadId></InitiateMultipartUploadResult>".encode())

    def put_part(self, upload, number, size):
        if not 1 <= number <= 10000:
            return self.fail(400, "InvalidArgument")
        etag = '"%s"' % self.md5.hex()
        upload["parts"][number] = (etag, size, self.piece)
        self.store.note()
        self.reply(200, headers={"ETag": etag})

    def list_parts(self, upload, query):
        most, after = min(int(query.get("max-parts", 1000)), 3), int(query.get("part-number-marker", 0))
        numbers = [number for number in sorted(upload["parts"]) if number > after]
        if self.fault in ("endless", "backwards"):
            number = after + 1 if self.fault == "endless" else 1
            return self.reply(200, b"<ListPartsResult><IsTruncated>true</IsTruncated><Part><PartNumber>%d</PartNumber>"
                                   b"<ETag>x</ETag><Size>1</Size></Part></ListPartsResult>" % number)
        body = (f"<ListPartsResult><Key>{escape(upload['key'])}</Key>"
                f"<IsTruncated>{'true' if len(numbers) > most else 'false'}</IsTruncated>")
        for number in numbers[:most]:
            etag, size, _ = upload["parts"][number]
            body += (f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etag, {chr(34): '&quot;'})}</ETag>"
                     f"<Size>{size}</Size></Part>")
        self.reply(200, (body + "</ListPartsResult>").encode())

    def list_uploads(self, bucket, query):
        if "uploads" not in query:
            return self.fail(501, "NotImplemented")
        body = "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"
        for name, upload in self.store.uploads.items():
            if upload["bucket"] == bucket and upload["key"].startswith(query.get("prefix", "")):
                body += (f"<Upload><Key>{escape(upload['key'])}</Key><UploadId>{escape(name)}</UploadId>"
                         f"<Initiated>{upload['begun'].strftime('%Y-%m-%dT%H:%M:%S.000Z')}</Initiated></Upload>")
        self.reply(200, (body + "</ListMultipartUploadsResult>").encode())

    def complete(self, name, upload, body):
        bucket, key = upload["bucket"], upload["key"]
        if self.is_in_the_way(bucket, key):
            return
        if self.fault == "late":
            return self.reply(200, b"<?xml version='1.0'?>   <Error><Code>InternalError</Code></Error>")
        wanted = [(int(re.search(r"<PartNumber>(\d+)<", part)[1]),
                   re.search(r"<ETag>([^<]*)<", part)[1].replace("&quot;", '"').replace("&#34;", '"'))
                  for part in re.findall(r"<Part>(.*?)</Part>", body.decode(), re.DOTALL)]
        if not wanted or [number for number, _ in wanted] != sorted({number for number, _ in wanted}):
            return self.fail(400, "InvalidPartOrder")
        digests, pieces = b"", []
        for number, etag in wanted:
            if number not in upload["parts"] or upload["parts"][number][0] != etag:
                return self.fail(400, "InvalidPart")
            _, size, piece = upload["parts"][number]
            if number != wanted[-1][0] and size < LEAST_PART:
                return self.fail(400, "EntityTooSmall")
            pieces.append(piece)
            digests += binascii.unhexlify(etag.strip('"'))
        etag = '"%s-%d"' % (hashlib.md5(digests).hexdigest(), len(wanted))
        if self.fault in ("short", "rotten"):
            with open(pieces[-1], "r+b") as file:
                last = file.seek(-1, os.SEEK_END)
                rotten = bytes([file.read(1)[0] ^ 1])
                file.truncate(last)
                file.seek(last)
                file.write(rotten if self.fault == "rotten" else b"")
        self.store.put(bucket, key, pieces, etag, upload["meta"])
        del self.store.uploads[name]
        self.store.note()
        self.reply(200, f"<CompleteMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
                        f"<ETag>{escape(etag)}</ETag></CompleteMultipartUploadResult>".encode())
