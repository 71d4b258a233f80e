"""Tests which key signs the requests to a bucket: aws_chain.py PROGRAM. The cases are tried with the program, and where it is
installed with boto3, the SDK whose choice is the reference.

A server on this machine is the bucket, the instance metadata service, the agent of containers, the Security Token
Service and the portal of single sign-on. The key of each has a name of its own, which the signature of a request tells.
"""
import datetime
import hashlib
import http.server
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

PROGRAM = sys.argv.pop(1)
ROLE = "arn:aws:iam::123456789012:role/converter"


def after(seconds):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Services(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, text, status=200):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")

    def role(self, name, token="Token"):
        self.server.given.append(name)
        key = {"AccessKeyId": name, "SecretAccessKey": "secret/of/" + name, token: "token-of-" + name}
        return {**key, "Expiration": after(self.server.lifetime), "Code": "Success"}

    def do_PUT(self):
        self.answer("session-token-of-the-instance")

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path.startswith("/latest/"):
            if self.headers["X-aws-ec2-metadata-token"] != "session-token-of-the-instance":
                return self.answer("", 401)
            name = path.rpartition("/")[2]
            return self.answer(json.dumps(self.role("OFINSTANCE")) if name else "converter")
        if path == "/container":
            right = self.headers["Authorization"] == "token-of-the-agent"
            return self.answer(json.dumps(self.role("OFCONTAINER")) if right else "", 200 if right else 403)
        if path == "/federation/credentials":
            wanted = {"account_id": ["123456789012"], "role_name": ["converter"]}
            right = self.headers["x-amz-sso_bearer_token"] == "login-token" and urllib.parse.parse_qs(query) == wanted
            key = {"accessKeyId": "OFSIGNON", "secretAccessKey": "s", "sessionToken": "t", "expiration": 4102444800000}
            return self.answer(json.dumps({"roleCredentials": key}) if right else "", 200 if right else 401)
        signed = re.search("Credential=([^/]*)/", self.headers["Authorization"] or "")
        self.server.seen.append(signed.group(1) if signed else None)
        return self.answer("<Error><Code>NoSuchKey</Code></Error>", 404)

    do_HEAD = do_GET

    def do_POST(self):
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        given = {name: value[0] for name, value in form.items()}
        signed = re.search("Credential=([^/]*)/[^/]*/[^/]*/sts/", self.headers["Authorization"] or "")
        if given["RoleArn"] != ROLE or given.get("ExternalId", "42") != "42":
            return self.answer("<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>", 403)
        if given["Action"] == "AssumeRoleWithWebIdentity":
            name = "OFWEB" if given["WebIdentityToken"] == "web+token/=" and not signed else "WRONG"
        else:
            name = "ROLEOF" + signed.group(1)
        key = self.role(name, "SessionToken")
        parts = "".join(f"<{each}>{key[each]}</{each}>" for each in ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"))
        action = given["Action"]
        return self.answer(f"<{action}Response><{action}Result><Credentials>{parts}</Credentials></{action}Result></{action}Response>")


class Chain(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Services)
        self.server.seen, self.server.given, self.server.lifetime = [], [], 3600
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        (self.home / ".aws" / "sso" / "cache").mkdir(parents=True)
        self.write("web-token", "web+token/=")

    def write(self, name, text):
        path = self.home / name
        path.write_text(text)
        return str(path)

    def environment(self, values):
        kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("AWS_") and "PROXY" not in name.upper()}
        service = {"AWS_ENDPOINT_URL": self.url, "AWS_EC2_METADATA_DISABLED": "true", "AWS_DEFAULT_REGION": "eu-west-1", "HOME": str(self.home)}
        return {**kept, **service, "GGUFMILL_CACHE": str(self.home / "cache"), **values}

    def run_program(self, values):
        words = [PROGRAM, "inspect", "s3://bucket/model.gguf"]
        return subprocess.run(words, env=self.environment(values), capture_output=True, text=True, timeout=60)

    def check(self, expected, values=(), config="", credentials=""):
        """The key named `expected` signs, None: nobody's does."""
        values = dict(values)
        self.write(".aws/config", config)
        self.write(".aws/credentials", credentials)
        done = self.run_program(values)
        self.assertEqual(set(self.server.seen), {expected}, done.stderr)
        self.assertNotRegex(done.stderr + done.stdout, "secret/of|token-of|login-token|web.token")
        if importlib.util.find_spec("boto3") is None:
            return
        code = "import boto3; key = boto3.Session().get_credentials(); print(key and key.get_frozen_credentials().access_key)"
        sdk = subprocess.run([sys.executable, "-c", code], env=self.environment(values), capture_output=True, text=True)
        self.assertEqual(sdk.stdout.strip(), str(expected), sdk.stderr)

    def check_refused(self, code, text, values=(), config="", credentials=""):
        self.write(".aws/config", config)
        self.write(".aws/credentials", credentials)
        done = self.run_program(dict(values))
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(self.server.seen, [])

    ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "OFENVIRONMENT", "AWS_SECRET_ACCESS_KEY": "s"}
    INSTANCE = {"AWS_EC2_METADATA_DISABLED": "false"}
    KEY = "aws_access_key_id = {}\naws_secret_access_key = s\n"

    def web(self):
        return {"AWS_WEB_IDENTITY_TOKEN_FILE": str(self.home / "web-token"), "AWS_ROLE_ARN": ROLE}

    def container(self):
        return {"AWS_CONTAINER_CREDENTIALS_FULL_URI": self.url + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "token-of-the-agent"}

    def instance(self):
        return {**self.INSTANCE, "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.url}

    def process(self, expected="OFPROCESS", version=1):
        text = json.dumps({"Version": version, "AccessKeyId": expected, "SecretAccessKey": "s", "Expiration": after(3600)})
        return f"credential_process = /bin/sh -c \"cat '{self.write('key.json', text)}'\"\n"

    def sign_on(self, expires=3600):
        name = hashlib.sha1(b"work").hexdigest()
        self.write(f".aws/sso/cache/{name}.json", json.dumps({"accessToken": "login-token", "expiresAt": after(expires), "region": "eu-west-1", "startUrl": "https://my.example/start"}))
        return (
            "sso_session = work\nsso_account_id = 123456789012\nsso_role_name = converter\n"
            "[sso-session work]\nsso_start_url = https://my.example/start\nsso_region = eu-west-1\nsso_registration_scopes = sso:account:access\n"
        )

    def test_nobodys(self):
        self.check(None)

    def test_each_alone(self):
        cases = {
            "OFENVIRONMENT": {"values": self.ENVIRONMENT},
            "OFWEB": {"values": self.web()},
            "OFSIGNON": {"config": "[default]\n" + self.sign_on()},
            "OFCREDENTIALS": {"credentials": "[default]\n" + self.KEY.format("OFCREDENTIALS")},
            "OFPROCESS": {"config": "[default]\n" + self.process()},
            "OFCONFIG": {"config": "[default]\n" + self.KEY.format("OFCONFIG")},
            "OFCONTAINER": {"values": self.container()},
            "OFINSTANCE": {"values": self.instance()},
        }
        for expected, case in cases.items():
            with self.subTest(expected):
                self.server.seen.clear()
                self.check(expected, **case)

    def test_each_before_those_after_it(self):
        machine = {**self.container(), **self.instance()}
        credentials = "[default]\n" + self.KEY.format("OFCREDENTIALS")
        config = "[default]\n" + self.KEY.format("OFCONFIG")
        with_process = config + self.process()
        role = f"role_arn = {ROLE}\ncredential_source = Environment\n"
        cases = (
            ("OFENVIRONMENT", {**self.ENVIRONMENT, **self.web(), **machine}, with_process, credentials),
            ("OFWEB", {**self.web(), **machine}, with_process, credentials),
            ("OFSIGNON", machine, "[default]\n" + self.KEY.format("OFCONFIG") + self.sign_on(), credentials),
            ("OFCREDENTIALS", machine, with_process, credentials),
            ("OFPROCESS", machine, with_process, ""),
            ("OFCONFIG", machine, config, ""),
            ("OFCONTAINER", machine, "", ""),
            ("OFENVIRONMENT", self.ENVIRONMENT, "[default]\n" + role, ""),
        )
        for expected, values, config, credentials in cases:
            with self.subTest(expected):
                self.server.seen.clear()
                self.check(expected, values, config, credentials)

    def test_roles_of_profiles(self):
        role = f"role_arn = {ROLE}\nexternal_id = 42\n"
        source = "[profile source]\n" + self.KEY.format("OFSOURCE")
        cases = (
            ("ROLEOFOFSOURCE", {}, f"[profile my]\n{role}source_profile = source\n{source}", ""),
            ("ROLEOFOFSOURCE", {}, f"[profile my]\n{role}source_profile = source\n", "[source]\n" + self.KEY.format("OFSOURCE")),
            ("ROLEOFOFSELF", {}, f"[profile my]\n{role}source_profile = my\n" + self.KEY.format("OFSELF"), ""),
            ("ROLEOFROLEOFOFSOURCE", {}, f"[profile my]\n{role}source_profile = middle\n[profile middle]\n{role}source_profile = source\n{source}", ""),
            ("ROLEOFOFINSTANCE", self.instance(), f"[profile my]\n{role}credential_source = Ec2InstanceMetadata\n", ""),
            ("ROLEOFOFCONTAINER", self.container(), f"[profile my]\n{role}credential_source = EcsContainer\n", ""),
            ("OFWEB", {}, f"[profile my]\n{role}web_identity_token_file = {self.home}/web-token\n", ""),
            ("ROLEOFOFPROCESS", {}, f"[profile my]\n{role}source_profile = source\n[profile source]\n{self.process()}", ""),
        )
        for expected, values, config, credentials in cases:
            with self.subTest(expected, config=config):
                self.server.seen.clear()
                self.check(expected, {**values, "AWS_PROFILE": "my"}, config, credentials)

    def test_the_endpoint_of_the_profile(self):
        for config in (f"endpoint_url = {self.url}\n", f"services = mine\n[services mine]\ns3 =\n  endpoint_url = {self.url}\n"):
            with self.subTest(config):
                self.server.seen.clear()
                self.check("OFENVIRONMENT", {**self.ENVIRONMENT, "AWS_ENDPOINT_URL": ""}, "[default]\n" + config)

    def test_a_key_is_asked_for_once_and_again_before_it_expires(self):
        self.write(".aws/config", "")
        for lifetime, wanted in ((3600, 1), (120, 2)):
            self.server.lifetime = lifetime
            self.server.given.clear()
            self.run_program(self.instance())
            self.assertEqual(len(self.server.given), wanted)

    def test_the_environment_has_no_key_of_a_source_profile(self):
        config = f"[profile my]\nrole_arn = {ROLE}\nsource_profile = source\n[profile source]\n" + self.KEY.format("OFSOURCE")
        self.check("ROLEOFOFSOURCE", {**self.web(), "AWS_PROFILE": "my"}, config)

    def test_names_in_capitals_and_the_other_name_of_the_default_profile(self):
        self.check("OFCREDENTIALS", credentials="[default]\n" + self.KEY.format("OFCREDENTIALS").upper().replace("= S", "= s"))
        self.server.seen.clear()
        self.check("OFCONFIG", config="[profile default]\n" + self.KEY.format("OFCONFIG"))

    def test_what_is_refused(self):
        self.write("time.json", '{"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "s", "Expiration": "tomorrow"}')
        role = f"[profile my]\nrole_arn = {ROLE}\n"
        my = {"AWS_PROFILE": "my"}
        cases = (
            (2, "there is no profile 'none'", {"AWS_PROFILE": "none"}, "", ""),
            (2, "has only half of a key", {"AWS_ACCESS_KEY_ID": "A"}, "", ""),
            (2, "nothing that may take on the role", my, role, ""),
            (2, "source_profile 'none', which does not exist", my, role + "source_profile = none\n", ""),
            (2, "refer to each other", my, f"{role}source_profile = b\n[profile b]\nrole_arn = {ROLE}\nsource_profile = my\n", ""),
            (2, "unknown credential_source 'Sky'", my, role + "credential_source = Sky\n", ""),
            (6, "the server gives no key: it answers 403", my, role.replace("converter", "other") + "credential_source = Environment\n", ""),
            (2, "would get secrets without encryption", {**self.web(), "AWS_ENDPOINT_URL_STS": "http://192.0.2.1:9000"}, "", ""),
            (6, "which is not a time", {}, f"[default]\ncredential_process = cat {self.home}/time.json\n", ""),
            (2, "has no token", {**self.web(), "AWS_WEB_IDENTITY_TOKEN_FILE": "/none"}, "", ""),
            (6, "run `aws sso login --profile default`", {}, "[default]\n" + self.sign_on(-1), ""),
            (6, "the program prints no key", {}, "[default]\n" + self.process(version=2), ""),
            (6, "ended with exit code 3", {}, "[default]\ncredential_process = sh -c 'exit 3'\n", ""),
            (2, "neither https nor an address of this machine", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://10.0.0.1/key"}, "", ""),
            (6, "the server gives no key: it answers 403", {**self.container(), "AWS_CONTAINER_AUTHORIZATION_TOKEN": "other"}, "", ""),
        )
        for code, text, values, config, credentials in cases:
            with self.subTest(text):
                more = self.ENVIRONMENT if "credential_source = Environment" in config and "half" not in text else {}
                if more:  # the environment comes first by itself: the role of a source
                    config = config.replace("credential_source = Environment", "source_profile = source") + "[profile source]\n" + self.KEY.format("X")
                self.check_refused(code, text, values, config, credentials)


if __name__ == "__main__":
    unittest.main()
