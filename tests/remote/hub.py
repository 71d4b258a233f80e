"""The repositories of server.py that files can be uploaded to, as on the Hugging Face hub.

A repository is a folder ROOT/hub/ORG/NAME with a folder for each commit, and refs.json, which says which commit a branch
is at. ROOT/lfs has the content of large files by their SHA-256. Sources: huggingface_hub (hf_api.py, _commit_api.py,
lfs.py), and the Git LFS batch API.

Faults are those of buckets, of the kinds "hub", "commit", "verify", and "lfs", those in `is_faulty`, and WRONG; what
the hub does not accept has the name `refused`.
"""
import base64
import hashlib
import json
import os
import re
import shutil

PART = int(os.environ.get("GGUFMILL_TEST_HUB_PART", 1 << 20))  # larger files are sent in parts
REGULAR = 4096  # smaller files are part of the commit itself, unless their names say otherwise
MOST = int(os.environ.get("GGUFMILL_TEST_HUB_MOST", 40 << 20))  # largest file that is accepted
LINKED = 1 << 30  # larger files of commits are links to the content
SIGNED = "signature=vErYsEcReTsIgNaTuRe"  # the query of a URL that needs no token


# Faults of the batch: the headers, or the address, that it names for the content.
WRONG = {"crlf": {"X-A": "1\r\nX-Injected: yes\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"},
         "lf": {"X-A": "1\nX-Injected: yes"}, "name": {"X-A: 1\r\nX-Injected": "yes"}, "colon": {"X-A: b": "c"},
         "host": {"Host": "evil.example"}, "length": {"Content-Length": "0"},
         "chunked": {"Transfer-Encoding": "chunked"},
         "number": {"X-A": 1}, "schemeless": None, "file": None, "user": None, "endless": None, "repeated": None}


def card_errors(text):
    return [{"message": '"license" must be one of [apache-2.0, mit, ...]'}] if "license: none-such" in text else []


class HubRequests:
    """Mixed into the handler of server.py."""
    is_lost = False  # the answer to the request
    is_wordless = False  # the answer is a success without content
    is_ignored = False  # the files that are asked about
    etags = {}  # of parts of content, by its name and their numbers
    wrong = ""  # what is wrong with the answer, a key of WRONG or the name of a list that does not end

    def hub_upload(self):
        """Returns False for a request that is none of these."""
        calls = [("GET", r"/api/models/([^/]+/[^/]+)/tree/([^/]+)", self.tree),
                 ("POST", r"/api/models/([^/]+/[^/]+)/preupload/([^/]+)", self.preupload),
                 ("POST", r"/api/models/([^/]+/[^/]+)/commit/([^/]+)", self.commit),
                 ("POST", r"/api/repos/create", self.create),
                 ("POST", r"/api/validate-yaml", self.validate_card),
                 ("POST", r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch", self.batch),
                 ("POST", r"/api/complete_multipart/([0-9a-f]{64})", self.join_parts),
                 ("POST", r"/lfs-verify/([0-9a-f]{64})", self.verify)]
        for command, pattern, method in calls:
            match = re.fullmatch(pattern, self.name)
            if match and command == self.command:
                self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                is_signed = method == self.join_parts and self.query == SIGNED
                kinds = ("hub",) + {self.commit: ("commit",), self.verify: ("verify",)}.get(method, ())
                if not self.is_faulty(*kinds) and (is_signed or self.may_write()):
                    method(*match.groups())
                return True
        return False

    def do_lfs(self):
        """Content, or a part of it, sent to a signed URL: /lfs/SHA256 or /lfs/SHA256/PART."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.query != SIGNED or "Authorization" in self.headers:
            return self.refuse(403)
        if self.is_faulty("lfs"):
            return None
        name, _, part = self.rest.partition("/")
        etag = '"%s"' % hashlib.md5(body).hexdigest()
        if part:
            self.store_part(name, int(part), body)
            self.etags[name, int(part)] = etag
        elif hashlib.sha256(body).hexdigest() != name:
            return self.refuse(400)
        else:
            self.store_content(name, body)
        self.json({}, {"ETag": etag})

    # ---- building blocks ----

    def lfs(self, name):
        return os.path.join(os.path.dirname(self.store.root), "lfs", name)

    def store_content(self, name, body):
        os.makedirs(os.path.dirname(self.lfs(name)), exist_ok=True)
        with open(self.lfs(name) + ".new", "wb") as file:
            file.write(body)
        os.replace(self.lfs(name) + ".new", self.lfs(name))

    def store_part(self, name, number, body):
        """Parts are in the place that they have in the content."""
        os.makedirs(os.path.dirname(self.lfs(name)), exist_ok=True)
        file = os.open(self.lfs(name) + ".parts", os.O_WRONLY | os.O_CREAT)
        for at in range(0, len(body), 1 << 20):
            os.pwrite(file, body[at:at + (1 << 20)], (number - 1) * PART + at)
        os.close(file)

    def own(self, path):
        """A URL of this port."""
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"

    def repository(self, name):
        return os.path.join(os.path.dirname(self.store.root), "hub", name)

    def refs(self, name):
        with open(os.path.join(self.repository(name), "refs.json")) as file:
            return json.load(file)

    def files(self, name, revision):
        """The folder of a branch's commit; None if there is none."""
        try:
            return os.path.join(self.repository(name), self.refs(name)[revision])
        except (FileNotFoundError, KeyError):
            return None

    def json(self, value, headers=None, status=200):
        if self.is_lost:
            return self.reset()
        if self.is_wordless:
            return self.refuse(200, body=b"")
        body = json.dumps(value).encode()
        self.send_response(status)
        for header, text in (headers or {}).items():
            self.send_header(header, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.write_body(body)

    def is_faulty(self, *kinds):
        fault = "".join(self.store.faults.next(kind) for kind in kinds)
        self.is_lost = fault == "lost"
        if fault in ("500", "503"):
            self.refuse(int(fault))
        elif fault == "reset":
            self.reset()
        elif fault == "denied":
            self.json({"error": "You may not write here"}, status=403)
        elif fault == "busy":
            self.json({"error": "Cannot create repo: another conflicting operation is in progress"}, status=409)
        elif fault == "empty":
            self.refuse(200, body=b"")
        elif fault == "gone":
            self.refuse(404)
        elif fault == "page":
            self.refuse(200)
        elif fault == "error":
            self.json({"error": "nothing was done", "commitOid": "c" * 40})
        elif fault == "unnamed":
            self.json({"success": True})
        elif fault == "echo":
            self.json({"error": "not with " + self.headers.get("Authorization", "")}, status=403)
        self.is_wordless = fault == "wordless"
        self.is_ignored = fault == "ignored"
        self.wrong = fault if fault in WRONG else ""
        return bool(fault) and not self.is_lost and not self.is_wordless and not self.is_ignored and not self.wrong

    def may_write(self):
        if self.headers.get("Authorization", "").startswith("Bearer hf_"):
            return True
        self.json({"error": "Invalid username or password."}, status=401)
        return False

    # ---- requests ----

    def create(self):
        wanted = json.loads(self.body)
        name = f"{wanted['organization']}/{wanted['name']}"
        if self.files(name, "main"):
            return self.json({"error": "You already created this model repo", "url": self.own("/" + name)}, status=409)
        first = "0" * 40
        os.makedirs(os.path.join(self.repository(name), first))
        with open(os.path.join(self.repository(name), "refs.json"), "w") as file:
            json.dump({"main": first}, file)
        with open(os.path.join(self.repository(name), "visibility"), "w") as file:
            file.write(wanted.get("visibility", "default of the organization"))
        self.json({"url": self.own("/" + name), "id": name})

    def validate_card(self):
        """The hub checks the front matter, and refuses a commit whose README.md it finds errors in."""
        wanted = json.loads(self.body)
        if wanted["repoType"] != "model":
            return self.refuse(400)
        errors = card_errors(wanted["content"])
        self.json({"errors": errors, "warnings": []}, status=400 if errors else 200)

    def tree(self, name, revision):
        top = self.files(name, revision)
        if not top:
            return self.json({"error": "Repository not found"}, status=404)
        entries = []
        for at, _, names in sorted(os.walk(top)):
            for each in sorted(names):
                with open(os.path.join(at, each), "rb") as file:
                    content = file.read()
                if each.endswith(".xet"):
                    entries.append(self.xet_entry(os.path.relpath(os.path.join(at, each), top), json.loads(content)))
                    continue
                entry = {"type": "file", "path": os.path.relpath(os.path.join(at, each), top), "size": len(content),
                         "oid": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()}
                if len(content) > REGULAR or each.endswith(".gguf"):
                    entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
                entries.append(entry)
        match = re.search(r"cursor=(\d+)", self.query)
        begin = int(match.group(1)) if match else 0
        headers = {}
        if self.wrong in ("endless", "repeated"):
            url = self.own(f"{self.name}?recursive=true&cursor={begin + 1 if self.wrong == 'endless' else 1}")
            return self.json([{"path": f"f{begin}", "oid": "0" * 40}], {"Link": f'<{url}>; rel="next"'})
        if begin + 2 < len(entries):  # pages of two
            url = self.own(f"{self.name}?recursive=true&cursor={begin + 2}")
            headers["Link"] = f'<{url}>; rel="next"'
        self.json(entries[begin:begin + 2], headers)

    def preupload(self, name, revision):
        if not self.files(name, revision):
            return self.json({"error": "Repository not found"}, status=404)
        answer = []
        for file in json.loads(self.body)["files"]:
            base64.b64decode(file["sample"], validate=True)
            large = file["size"] > REGULAR or file["path"].endswith(".gguf")
            answer.append({"path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": self.is_ignored})
        self.json({"files": answer})

    def batch(self, name):
        wanted = json.loads(self.body)
        if self.headers.get("Content-Type") != "application/vnd.git-lfs+json" or wanted["operation"] != "upload":
            return self.refuse(422)
        answer = []
        for each in wanted["objects"]:
            one = {"oid": each["oid"], "size": each["size"]}
            if each["size"] > MOST and not ("xet" in wanted.get("transfers", []) and self.has_xet()):
                one["error"] = {"code": 422, "message": "File too large"}
            elif not os.path.exists(self.lfs(each["oid"])) and not self.xet_of_sha256(each["oid"]):
                upload = {"href": self.other(f"/lfs/{each['oid']}?{SIGNED}")}
                if each["size"] > PART and "multipart" in wanted.get("transfers", []):
                    parts = (each["size"] + PART - 1) // PART
                    upload = {"href": self.own(f"/api/complete_multipart/{each['oid']}?{SIGNED}"),
                              "header": {"chunk_size": str(PART), **{
                                  f"{part:05}": self.other(f"/lfs/{each['oid']}/{part}?{SIGNED}")
                                  for part in range(1, parts + 1)}}}
                one["actions"] = {"upload": upload, "verify": {"href": self.own(f"/lfs-verify/{each['oid']}")}}
                if WRONG.get(self.wrong):
                    one["actions"]["upload"] = {"href": self.other(f"/wrong/{each['oid']}"), "header": WRONG[self.wrong]}
                elif "xet" in wanted.get("transfers", []) and self.has_xet():
                    one["actions"]["upload"] = {"href": self.own("/xet"), "header": {"X-Xet-Cas-Url": self.own("/xet")}}
                elif self.wrong in ("schemeless", "file", "user"):
                    scheme, _, rest = self.other("/wrong").partition("://")
                    wrong = {"schemeless": rest, "file": "file:///wrong", "user": f"{scheme}://user:word@{rest}"}
                    one["actions"]["upload"] = {"href": wrong[self.wrong]}
            answer.append(one)
        is_xet = "xet" in wanted.get("transfers", []) and self.has_xet()
        self.json({"transfer": "xet" if is_xet else "basic", "objects": answer})

    def join_parts(self, oid):
        for part in json.loads(self.body)["parts"]:
            if part["etag"] != self.etags.get((oid, part["partNumber"])):
                return self.refuse(400)
        if os.path.exists(self.lfs(oid)):  # the answer to an earlier request was lost
            return self.json({})
        digest = hashlib.sha256()
        with open(self.lfs(oid) + ".parts", "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        if digest.hexdigest() != oid:
            return self.refuse(400)
        os.replace(self.lfs(oid) + ".parts", self.lfs(oid))
        self.json({})

    def verify(self, oid):
        wanted = json.loads(self.body)
        if wanted["oid"] != oid or os.path.getsize(self.lfs(oid)) != wanted["size"]:
            return self.refuse(404)
        self.json({})

    def commit(self, name, revision):
        top = self.files(name, revision)
        if not top:
            return self.json({"error": "Repository not found"}, status=404)
        lines = [json.loads(line) for line in self.body.decode().splitlines()]
        if self.headers.get("Content-Type") != "application/x-ndjson" or lines[0]["key"] != "header":
            return self.refuse(400)
        oid = hashlib.sha1(self.body + top.encode()).hexdigest()
        new = os.path.join(self.repository(name), oid)
        if not os.path.exists(new):
            shutil.copytree(top, new)
        for line in lines[1:]:
            value = line["value"]
            known = self.xet_of_sha256(value["oid"]) if line["key"] == "lfsFile" else None
            if line["key"] == "lfsFile" and not known and not os.path.exists(self.lfs(value["oid"])):
                return self.json({"error": "LFS pointer points to a file that does not exist"}, status=400)
            path = os.path.join(new, value["path"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if known:  # the content is in the store of Xet; the commit has where
                with open(path, "w", encoding="utf-8") as file:
                    json.dump({"oid": value["oid"], "size": value["size"], "xet": known["xet"]}, file)
                os.rename(path, path + ".xet")
            elif line["key"] == "lfsFile":
                (os.link if value["size"] > LINKED else shutil.copyfile)(self.lfs(value["oid"]), path)
            else:
                content = base64.b64decode(value["content"])
                if value["path"] == "README.md" and card_errors(content.decode()):
                    return self.json({"error": "Invalid metadata in README.md"}, status=400)
                with open(path, "wb") as file:
                    file.write(content)
        refs = self.refs(name)
        refs[revision] = oid
        with open(os.path.join(self.repository(name), "refs.json"), "w") as file:
            json.dump(refs, file)
        with open(os.path.join(self.repository(name), "messages.txt"), "a") as file:
            file.write(lines[0]["value"]["summary"] + "\n")
        self.json({"success": True, "commitOid": oid, "commitUrl": self.own(f"/{name}/commit/{oid}")})
