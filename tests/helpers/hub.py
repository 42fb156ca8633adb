"""A Hugging Face Hub on localhost, in memory: what real clients upload to it they load from it, at every revision."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote

import yaml

USER = "tester"
LARGE = re.compile(r"(?i).*\.(arrow|bin|gz|jpe?g|model|msgpack|np[yz]|onnx|parquet|pkl|png|pth?|safetensors|tar|zip)")
ON = ("HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_PROGRESS_BARS", "OMP_NUM_THREADS")
OFF = ("HF_UPDATE_DOWNLOAD_COUNTS", "TOKENIZERS_PARALLELISM")  # such counts go to a server that is not the Hub
ROUTES = []
API = r"/api/(model|dataset|space)s/([^/]+/[^/]+)"
PAGES = r"/(?:(dataset|space)s/)?([^/]+/[^/]+)"


class Refusal(Exception):
    def __init__(self, status, message, code=None, **headers):
        self.status, self.message = status, message
        self.headers = {**headers, **({"X-Error-Code": code} if code else {})}


class File(NamedTuple):
    data: bytes
    large: bool

    def entry(self, path):
        head = b"" if self.large else b"blob %d\0" % len(self.data)
        oid = hashlib.new("sha256" if self.large else "sha1", head + self.data).hexdigest()
        lfs = {"lfs": {"oid": oid, "sha256": oid, "size": len(self.data), "pointerSize": 130}} if self.large else {}
        return {"type": "file", "path": path, "size": len(self.data), "oid": oid, **lfs}


class Commit(NamedTuple):
    sha: str
    title: str
    date: str
    files: dict[str, File]

    def entries(self):
        folders = sorted({path[: at.start()] for path in self.files for at in re.finditer("/", path)})
        found = [{"type": "directory", "path": path, "size": 0, "oid": self.sha} for path in folders]
        return found + [file.entry(path) for path, file in sorted(self.files.items())]


class Repo:
    def __init__(self, kind, name, private=False):
        self.name, self.private, self.refs, self.commits = name, private, {}, {}
        self.path = name if kind == "model" else f"{kind}s/{name}"
        self.commit("main", "initial commit", {".gitattributes": File(b"*.parquet filter=lfs\n", False)})

    def commit(self, ref, title, files):
        sha = hashlib.sha1(f"{self.path} {len(self.commits)} {title}".encode()).hexdigest()
        date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.refs[ref] = self.commits[sha] = Commit(sha, title, date, files)
        return sha

    def at(self, revision):
        if found := self.refs.get(revision) or self.commits.get(revision):
            return found
        raise Refusal(404, f"{self.path} has no revision {revision}", "RevisionNotFound")


class LoopbackHub:
    """Listens on 127.0.0.1 while the `with` block runs.

    url: the endpoint. requests: each "METHOD /path" in order. unknown: those that no route knows, or that broke one.
    deny: called with each "METHOD /path"; where it returns a sentence, the answer is 403 with it.
    """

    def __enter__(self):
        self.repos, self.blobs, self.requests, self.unknown = {}, {}, [], []
        self.deny = lambda request: None
        self.lock = threading.Lock()
        handler = type("Bound", (Handler,), {"hub": self, "log_message": lambda *_: None})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()

    def env(self, home, **more):
        """The environment of a client process whose caches are under the folder `home`."""
        kept = {k: v for k, v in os.environ.items() if not re.match(r"(?i)HF_|HUGGING|.*_proxy$", k)}
        ours = {"HF_ENDPOINT": self.url, "HF_HOME": str(home), "HF_TOKEN": "hf_loopback", "NO_PROXY": "127.0.0.1"}
        return {**kept, **dict.fromkeys(ON, "1"), **dict.fromkeys(OFF, "0"), **ours, **more}

    def run(self, code, home, *arguments):
        """What `code` prints in a fresh process that talks to this Hub; it finds the arguments in sys.argv[1:]."""
        command = [sys.executable, "-c", "import sys\n" + code, *map(str, arguments)]
        done = subprocess.run(command, env=self.env(home), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def files(self, name, revision="main", *, kind="dataset"):
        """Path -> content at a revision, without the .gitattributes that every repo has."""
        found = self.repos[kind, name].at(revision).files
        return {path: file.data for path, file in found.items() if path != ".gitattributes"}


def front_matter(card):
    found = re.match(r"\s*---\r?\n(.*?)\r?\n---", card, re.DOTALL)
    return (yaml.safe_load(found[1]) if found else None) or {}


def route(methods, pattern):
    def add(function):
        ROUTES.append((methods.split(), re.compile(pattern), function))
        return function

    return add


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        raw, _, query = self.path.partition("?")
        self.query = {name: values[-1] for name, values in parse_qs(query).items()}
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            with self.hub.lock:
                answer = self.dispatch(raw, f"{self.command} {unquote(raw)}")
        except Refusal as refusal:
            answer = refusal.status, {"error": refusal.message}, refusal.headers
        except Exception as error:  # a 500 would be tried again and again
            self.hub.unknown.append(f"{self.command} {raw}: {error!r}")
            answer = 400, {"error": repr(error)}
        self.answer(*(answer if isinstance(answer, tuple) else (200, answer)))

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def dispatch(self, raw, request):
        self.hub.requests.append(request)
        if reason := self.hub.deny(request):
            raise Refusal(403, reason)
        for methods, pattern, function in ROUTES:
            if self.command in methods and (match := pattern.fullmatch(raw)):
                return function(self, *(part and unquote(part) for part in match.groups()))
        self.hub.unknown.append(request)
        raise Refusal(404, f"nothing at {request}")

    def answer(self, status, content, headers=None):
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(content), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def repo(self, kind, name):
        found = self.hub.repos.get((kind or "model", name))
        if not found or (found.private and not self.headers.get("Authorization")):
            raise Refusal(404, f"no {kind or 'model'} {name}", "RepoNotFound")
        return found

    @route("GET", "/api/whoami-v2")
    def whoami(self):
        return {"type": "user", "name": USER, "fullname": USER, "orgs": [], "auth": {}}

    @route("POST", "/api/validate-yaml")
    def validate_yaml(self):
        try:
            licence = str(front_matter(json.loads(self.body)["content"]).get("license", ""))
            problem = None if re.fullmatch(r"[a-z0-9.-]*", licence) else f'"license" must not be "{licence}"'
        except (yaml.YAMLError, AttributeError) as error:
            problem = f"invalid YAML: {error}"
        if problem and self.headers.get("Accept") == "text/plain":
            return 400, problem.encode()
        return 400 if problem else 200, {"errors": [{"message": problem}] if problem else [], "warnings": []}

    @route("GET", "/api/[a-z]+-harnesses")
    def harnesses(self):  # each client asks for this list and does without it
        raise Refusal(404, "no such list")

    @route("POST", "/api/repos/create")
    def create(self):
        sent = json.loads(self.body)
        kind, name = sent.get("type") or "model", f"{sent.get('organization') or USER}/{sent['name']}"
        there = (kind, name) in self.hub.repos
        if not there:
            self.hub.repos[kind, name] = Repo(kind, name, sent.get("visibility") == "private")
        answer = {"url": f"{self.hub.url}/{self.hub.repos[kind, name].path}", "name": name}
        return (409, {**answer, "error": "You already created this repo"}) if there else answer

    @route("GET", API + r"(?:/revision/([^/]+))?")
    def info(self, kind, name, revision):
        repo = self.repo(kind, name)
        head = repo.at(revision or "main")
        data = front_matter(head.files["README.md"].data.decode()) if "README.md" in head.files else {}
        names = [{"rfilename": i["path"], "blobId": i["oid"], **i} for i in head.entries() if i["type"] == "file"]
        about = {key: data[key] for key in ("pipeline_tag", "library_name", "sdk", "tags") if key in data}
        return {"id": name, "sha": head.sha, "lastModified": head.date, "private": repo.private, "gated": False,
                "cardData": data, "siblings": names, "tags": [], "downloads": 0, "likes": 0, **about}  # fmt: skip

    @route("GET", API + r"/tree/([^/]+)(?:/(.+))?")
    def tree(self, kind, name, revision, folder):
        top = folder.rstrip("/") + "/" if folder else ""
        found = [item for item in self.repo(kind, name).at(revision).entries() if item["path"].startswith(top)]
        if top and not found:
            raise Refusal(404, f"{name} has no folder {folder}", "EntryNotFound")
        deep = self.query.get("recursive", "").lower() in ("true", "1")
        return [item for item in found if deep or "/" not in item["path"][len(top) :]]

    @route("POST", API + r"/paths-info/([^/]+)")
    def paths_info(self, kind, name, revision):
        wanted = {path.rstrip("/") for path in parse_qs(self.body.decode()).get("paths", [])}
        return [item for item in self.repo(kind, name).at(revision).entries() if item["path"] in wanted]

    @route("GET", API + "/refs")
    def refs(self, kind, name):
        found = {"branches": [], "pullRequests": [], "converts": [], "tags": []}
        for ref, head in self.repo(kind, name).refs.items():
            group, full = ("pullRequests", ref) if ref.startswith("refs/") else ("branches", f"refs/heads/{ref}")
            found[group].append({"name": ref.removeprefix("refs/"), "ref": full, "targetCommit": head.sha})
        return found

    @route("POST", API + r"/branch/([^/]+)")
    def branch(self, kind, name, branch):
        repo = self.repo(kind, name)
        if branch.startswith("refs/") or branch in repo.refs:
            raise Refusal(409 if branch in repo.refs else 400, f"no new branch can be called {branch}")
        repo.refs[branch] = repo.at(json.loads(self.body or b"{}").get("startingPoint", "main"))
        return {}

    @route("POST", API + r"/preupload/([^/]+)")
    def preupload(self, kind, name, revision):
        there = {item["path"]: item["oid"] for item in self.repo(kind, name).at(revision).entries()}
        files = json.loads(self.body)["files"]
        for file in files:
            large = LARGE.fullmatch(file["path"]) or file["size"] > 10_000_000
            file.update(uploadMode="lfs" if large else "regular", shouldIgnore=False, oid=there.get(file["path"]))
        return {"files": files}

    @route("POST", PAGES + r"\.git/info/lfs/objects/batch")
    def lfs_batch(self, kind, name):
        self.repo(kind, name)
        objects = json.loads(self.body)["objects"]
        for item in objects:
            if item["oid"] not in self.hub.blobs:
                item["actions"] = {"upload": {"href": f"{self.hub.url}/lfs/{item['oid']}"}}
        return {"transfer": "basic", "objects": objects}

    @route("PUT", "/lfs/([0-9a-f]{64})")
    def lfs_put(self, oid):
        if hashlib.sha256(self.body).hexdigest() != oid:
            raise Refusal(400, f"what was sent as {oid} has another checksum")
        self.hub.blobs[oid] = self.body
        return {}

    @route("POST", API + r"/commit/([^/]+)")
    def commit(self, kind, name, revision):
        repo, pull = self.repo(kind, name), "create_pr" in self.query
        base = repo.at(revision)
        files, sent = dict(base.files), [json.loads(line) for line in self.body.splitlines()]
        header = next(item["value"] for item in sent if item["key"] == "header")
        if not pull and (revision not in repo.refs or not base.sha.startswith(header.get("parentCommit", ""))):
            raise Refusal(412, f"{revision} is no branch or has moved on")
        for what, value in ((item["key"], item["value"]) for item in sent):
            if what == "file":
                files[value["path"]] = File(base64.b64decode(value["content"]), False)
            elif what == "lfsFile":
                files[value["path"]] = File(self.hub.blobs[value["oid"]], True)
            elif what == "deletedFolder":
                files = {path: file for path, file in files.items() if not path.startswith(value["path"])}
            elif what == "deletedFile" and files.pop(value["path"], None) is None:
                raise Refusal(404, f"A file with this name doesn't exist: {value['path']}", "EntryNotFound")
        number = 1 + sum(ref.startswith("refs/pr/") for ref in repo.refs)
        sha, page = repo.commit(f"refs/pr/{number}" if pull else revision, header["summary"], files), repo.path
        return {"success": True, "commitOid": sha, "commitUrl": f"{self.hub.url}/{page}/commit/{sha}",
                "pullRequestUrl": f"{self.hub.url}/{page}/discussions/{number}" if pull else None}  # fmt: skip

    @route("GET HEAD", PAGES + r"/resolve/([^/]+)/(.+)")
    def resolve(self, kind, name, revision, path):
        head = self.repo(kind, name).at(revision)
        headers = {"X-Repo-Commit": head.sha, "Accept-Ranges": "bytes"}
        if path not in head.files:
            raise Refusal(404, f"{name} has no file {path}", "EntryNotFound", **headers)
        data, headers["ETag"] = head.files[path].data, f'"{head.files[path].entry(path)["oid"]}"'
        part = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not part:
            return 200, data, headers
        piece = data[int(part[1]) : int(part[2] or len(data)) + 1]
        return 206, piece, {**headers, "Content-Range": f"bytes {part[1]}-{int(part[1]) + len(piece) - 1}/{len(data)}"}
