"""The content store of server.py that the hub's large files go to with Xet: as much of its protocol as uploads and reads need.

A file is cut into chunks, the chunks are collected in xorbs, and a shard says of which chunks of which xorbs a file consists.
ROOT/xet has the xorbs, and for each file its terms and its SHA-256. Sources: xet-core (cas_client, mdb_shard, cas_object;
Apache License 2.0) and huggingface_hub. Hashes are not computed: what a reader gets is what it checks.
"""
import json
import os
import re
import struct
import time

XET_TOKEN = "xEtToKeNoFtHeTeSt"
BRIDGE = "signature=vErYsEcReTsIgNaTuRe"  # the query of its URLs
LAST = b"\xff" * 32  # instead of a hash: the end of a list
WITH_CHECKS, WITH_SHA256 = 1 << 31, 1 << 30  # flags of a file in a shard


def hash_text(raw):
    return "".join(f"{number:016x}" for number in struct.unpack("<4Q", raw))


def files_in(shard):
    """Yields (hash, SHA-256, [(xorb, bytes, first chunk, last chunk + 1)]) of each file. A header of 48 bytes comes first."""
    at = 48
    while shard[at:at + 32] != LAST:
        name, flags, count = hash_text(shard[at:at + 32]), *struct.unpack("<II", shard[at + 32:at + 40])
        at += 48
        terms = []
        for _ in range(count):
            xorb, (_, length, first, last) = hash_text(shard[at:at + 32]), struct.unpack("<4I", shard[at + 32:at + 48])
            terms.append((xorb, length, first, last))
            at += 48
        at += 48 * count if flags & WITH_CHECKS else 0
        sha256 = hash_text(shard[at:at + 32]) if flags & WITH_SHA256 else None
        at += 48 if flags & WITH_SHA256 else 0
        yield name, sha256, terms


def chunk_ends(xorb):
    """Returns where each chunk of a xorb ends: each has a header of 8 bytes, with its length in 3 of them."""
    ends, at = [], 0
    while at + 8 <= len(xorb) and xorb[at] == 0:
        at += 8 + int.from_bytes(xorb[at + 1:at + 4], "little")
        ends.append(at)
    return ends


def lz4(frame):
    """What a frame of LZ4 contains. Source: LZ4 Frame Format Description, LZ4 Block Format Description."""
    flags = frame[4]
    at = 7 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
    out = bytearray()
    while size := int.from_bytes(frame[at:at + 4], "little"):
        at, count = at + 4, size & 0x7FFFFFFF
        if size >> 31:
            out += frame[at:at + count]
        else:
            add_block(frame[at:at + count], out)
        at += count + (4 if flags & 16 else 0)
    return bytes(out)


def add_block(block, out):
    at = 0

    def length(number):
        nonlocal at
        more = 255 if number == 15 else 0
        while more == 255:
            more, at = block[at], at + 1
            number += more
        return number

    while True:
        token, at = block[at], at + 1
        count = length(token >> 4)
        out += block[at:at + count]
        at += count
        if at >= len(block):
            return
        back, at = int.from_bytes(block[at:at + 2], "little"), at + 2
        count = length(token & 15) + 4
        piece = out[len(out) - back:len(out) - back + count]
        out += (piece * (count // len(piece) + 1))[:count]


def chunk_content(chunk):
    """What a chunk contains: as it is (0), compressed (1), or with every fourth byte in a group, and then compressed (2)."""
    scheme, size = chunk[4], int.from_bytes(chunk[5:8], "little")
    content = lz4(chunk[8:]) if scheme else chunk[8:]
    if scheme == 2:
        groups, content, at = content, bytearray(size), 0
        for i in range(4):
            count = (size + 3 - i) // 4
            content[i::4] = groups[at:at + count]
            at += count
    return bytes(content)


class XetRequests:
    """Mixed into the handler of server.py."""
    ends, sizes = {}, {}  # of each xorb: where its chunks end, and how long their contents are

    def xet_file(self, *names):
        return os.path.join(os.path.dirname(self.store.root), "xet", *names)

    def has_xet(self):
        """Whether the hub offers Xet: the test has made a folder for it."""
        return os.path.isdir(self.xet_file())

    def xet_of_sha256(self, sha256):
        try:
            with open(self.xet_file(f"{sha256}.json"), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def hub_xet(self):
        """Returns False for a request that is none of these."""
        calls = [("GET", r"/api/models/([^/]+/[^/]+)/xet-(write|read)-token/(.+)", self.xet_token),
                 ("GET", r"/xet/v1/chunks/[^/]+/([0-9a-f]{64})", self.unknown_chunk),
                 ("POST", r"/xet/v1/xorbs/[^/]+/([0-9a-f]{64})", self.add_xorb),
                 ("POST", r"/(?:xet/)?(?:v1/)?shards?", self.add_shard),
                 ("GET", r"/xet/v1/reconstructions/([0-9a-f]{64})", self.reconstruct),
                 ("GET", r"/xet/data/([0-9a-f]{64})", self.xorb_data)]
        for command, pattern, method in calls:
            match = re.fullmatch(pattern, self.name)
            if match and command == self.command and self.has_xet():
                self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if method == self.xet_token:
                    if match[2] == "read" or self.may_write():
                        method(*match.groups())
                elif method != self.xorb_data and self.headers.get("Authorization") != f"Bearer {XET_TOKEN}":
                    self.refuse(401)
                elif not self.is_faulty("xet"):
                    method(*match.groups())
                return True
        if self.name.startswith("/xet/"):  # such as grants to send xorbs elsewhere, which this store does not give
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.refuse(404)
            return True
        return False

    # ---- what the hub says of such files ----

    def xet_entry(self, path, known):
        """The entry of a listing."""
        return {"type": "file", "path": path.removesuffix(".xet"), "size": known["size"], "oid": "0" * 40, "xetHash": known["xet"],
                "lfs": {"oid": known["oid"], "size": known["size"], "pointerSize": 134}}

    def resolve_xet(self, name, path, headers):
        """The answer to a request for a file, which a reader with Xet fetches from the store."""
        with open(os.path.join(os.path.dirname(self.store.root), path), encoding="utf-8") as file:
            known = json.load(file)
        route = self.own(f"/api/models/{name}/xet-read-token/main")
        self.send_response(302)
        for header, text in [*headers, ("X-Xet-Hash", known["xet"]), ("X-Xet-Refresh-Route", route), ("X-Linked-Size", str(known["size"])),
                             ("X-Linked-ETag", f'"{known["oid"]}"'), ("Link", f'<{route}>; rel="xet-auth"'),
                             ("Location", self.bridge(known["xet"])), ("Content-Length", "0")]:
            self.send_header(header, text)
        self.end_headers()

    # ---- the bridge, from which readers without Xet get files ----

    def bridge(self, name):
        """The address of a file; of nothing if the test has removed the bridge."""
        return self.other(f"/nowhere/{name}" if os.path.exists(self.xet_file("no-bridge")) else f"/bridge/{name}?{BRIDGE}")

    def do_bridge(self):
        path = self.xet_file(f"{self.rest}.whole")
        if self.query != BRIDGE or "Authorization" in self.headers:
            return self.refuse(403)
        if not os.path.exists(path):
            with open(path + ".new", "wb") as whole:
                for xorb, _, first, last in self.xet_of_sha256(self.rest)["terms"]:
                    with open(self.xet_file(xorb), "rb") as file:
                        content = file.read()
                    ends = [0, *self.ends[xorb]]
                    for chunk in range(first, last):
                        whole.write(chunk_content(content[ends[chunk]:ends[chunk + 1]]))
            os.replace(path + ".new", path)
        self.serve(os.path.relpath(path, os.path.dirname(self.store.root)))

    # ---- the store ----

    def xet_token(self, _name, _kind, _revision):
        expires = int(time.time()) + 3600
        self.json({"casUrl": self.own("/xet"), "accessToken": XET_TOKEN, "exp": expires},
                  {"X-Xet-Cas-Url": self.own("/xet"), "X-Xet-Access-Token": XET_TOKEN, "X-Xet-Token-Expiration": str(expires)})

    def unknown_chunk(self, _chunk):
        self.refuse(404)

    def add_xorb(self, name):
        is_new = not os.path.exists(self.xet_file(name))
        with open(self.xet_file(name), "wb") as file:
            file.write(self.body)
        self.ends[name] = chunk_ends(self.body)
        self.sizes[name] = [int.from_bytes(self.body[at + 5:at + 8], "little") for at in [0, *self.ends[name][:-1]]]
        self.json({"was_inserted": is_new})

    def add_shard(self):
        for name, sha256, terms in files_in(self.body):
            for xorb, _, _, last in terms:
                if last > len(self.ends.get(xorb, ())):
                    return self.refuse(400)
            described = {"xet": name, "bytes": sum(term[1] for term in terms), "terms": terms}
            for key in (name, sha256):
                with open(self.xet_file(f"{key}.json"), "w", encoding="utf-8") as file:
                    json.dump(described, file)
        self.json({"result": 1})

    def reconstruct(self, name):
        known = self.xet_of_sha256(name)
        if not known:
            return self.refuse(404)
        begin, end = self.asked(known["bytes"]) or (0, known["bytes"] - 1)
        if begin > end:
            return self.refuse(416)
        terms, ranges, at, skipped = [], {}, 0, None
        for xorb, _, first, last in known["terms"]:
            ends, sizes = [0, *self.ends[xorb]], self.sizes[xorb]
            chosen = []
            for chunk in range(first, last):
                if at <= end and at + sizes[chunk] > begin:
                    chosen.append(chunk)
                    skipped = begin - at if skipped is None else skipped
                at += sizes[chunk]
            if not chosen:
                continue
            first, last = chosen[0], chosen[-1] + 1
            chunks = {"start": first, "end": last}
            terms.append({"hash": xorb, "unpacked_length": sum(sizes[first:last]), "range": chunks})
            ranges.setdefault(xorb, []).append({"range": chunks, "url": self.own(f"/xet/data/{xorb}"),
                                                "url_range": {"start": ends[first], "end": ends[last] - 1}})
        self.json({"offset_into_first_range": skipped, "terms": terms, "fetch_info": ranges})

    def xorb_data(self, name):
        self.serve(os.path.relpath(self.xet_file(name), os.path.dirname(self.store.root)))
