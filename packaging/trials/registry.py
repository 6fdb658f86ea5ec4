"""A registry of npm on this machine, with the packages of a folder and nothing else."""

import base64
import hashlib
import http.server
import json
import tarfile
import threading


class Registry:
    """Serves the packages until it is closed, and keeps the paths that were asked for."""

    def __init__(self, folder):
        self.asked = []
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            log_message = lambda *_arguments: None

            def do_GET(self):
                registry.asked.append(self.path)
                registry.answer(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.files = {path.name: path for path in folder.glob("*.tgz")}
        self.packages = dict(self.described(path) for path in self.files.values())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.server.shutdown()
        self.server.server_close()

    def described(self, path):
        """Returns the name of a package, and what a registry says about it."""
        with tarfile.open(path) as archive:
            manifest = json.load(archive.extractfile("package/package.json"))
        content = path.read_bytes()
        integrity = base64.b64encode(hashlib.sha512(content).digest()).decode()
        dist = {"tarball": f"{self.url}/{path.name}", "integrity": f"sha512-{integrity}"}
        name, version = manifest["name"], manifest["version"]
        return name, {"name": name, "dist-tags": {"latest": version}, "versions": {version: manifest | {"dist": dist}}}

    def answer(self, request):
        name = request.path.strip("/")
        if name in self.files:
            content, kind = self.files[name].read_bytes(), "application/octet-stream"
        elif name in self.packages:
            content, kind = json.dumps(self.packages[name]).encode(), "application/json"
        else:
            request.send_error(404)
            return
        request.send_response(200)
        request.send_header("content-type", kind)
        request.send_header("content-length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)
