"""Servers for the tests of fetching: a hub, its content host and two mirrors by a real nginx, and one
server that misbehaves in the ways that nginx cannot.

    fetch_rig.py FOLDER MODEL

Makes an authority and certificates with openssl in FOLDER, publishes the files of the folder MODEL
as Org/Toy, starts everything on loopback addresses, prints "NAME VALUE" lines and "ready", and
serves until its standard input ends. The servers' logs are FOLDER/NAME.log: method, path, the
Authorization, Range and If-Range headers, and the status, separated by tabs.

    hub       127.0.0.1   the API, also of repositories whose answers are wrong; the small files;
                          redirects to the content host for large ones
    content   127.0.0.2   large files, for requests with the signature that the hub gives
    mirror    127.0.0.3   everything below /good/; below other folders the same with one fault
    plain     127.0.0.3   the mirror without TLS
    bad       127.0.0.4   see Bad below
    stranger  127.0.0.1   a certificate of an authority that nobody knows
    misnamed  127.0.0.1   a certificate for another address
    late      127.0.0.1   a certificate that has expired
"""

import hashlib
import http.server
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

COMMIT = "22b75507981345858dd152fbd9a6f8c0c4068b0a"
SIGNATURE = "sig=5f2b"
LARGE = 100000  # bytes; larger files lie outside of git, on the content host


def run(*words, cwd=None):
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(words), done.stdout.decode(errors="replace")))


def free_port(address):
    with socket.socket() as s:
        s.bind((address, 0))
        return s.getsockname()[1]


# ---- certificates -------------------------------------------------------------------------------


def make_certificates(folder):
    def authority(name):
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-keyout", name + ".key", "-out", name + ".pem", "-days", "2", "-subj",
            "/CN=throw-away " + name, "-addext", "basicConstraints=critical,CA:TRUE", cwd=folder)
        open(os.path.join(folder, name + ".index"), "w").close()
        with open(os.path.join(folder, name + ".cnf"), "w") as f:
            f.write("[ca]\ndefault_ca = a\n[a]\ndatabase = %s.index\nnew_certs_dir = .\n"
                    "rand_serial = yes\ndefault_md = sha256\npolicy = p\ncopy_extensions = copy\n"
                    "unique_subject = no\n[p]\ncommonName = supplied\n" % name)

    def certificate(name, by, addresses, *dates):
        run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name, "-addext",
            "subjectAltName=" + ",".join("IP:" + a for a in addresses), cwd=folder)
        run("openssl", "ca", "-batch", "-notext", "-config", by + ".cnf", "-cert", by + ".pem",
            "-keyfile", by + ".key", "-in", name + ".csr", "-out", name + ".pem",
            *(dates or ("-days", "2")), cwd=folder)

    everyone = ["127.0.0.%d" % i for i in range(1, 5)]
    authority("ca")
    authority("other")
    certificate("server", "ca", everyone)
    certificate("stranger", "other", everyone)
    certificate("misnamed", "ca", ["127.0.0.9"])
    certificate("late", "ca", everyone, "-startdate", "20200101000000Z", "-enddate",
                "20200102000000Z")


# ---- what is published --------------------------------------------------------------------------


def git_name(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def publish(folder, model):
    """The model and some files that the engine does not need, below FOLDER/files; what the hub's
    API says about them, in two pages, below FOLDER/api."""
    files = os.path.join(folder, "files")
    shutil.copytree(model, files)
    os.mkdir(os.path.join(files, ".eval"))
    for name, text in (("joint_schema_model.py", "raise SystemExit('never run')\n"),
                       ("README.md", "# Toy\n"), (".eval/a b.yaml", "score: 1\n"),
                       ("empty.txt", "")):
        with open(os.path.join(files, name), "w") as f:
            f.write(text)
    content, listing = {}, []
    for root, _, names in os.walk(files):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(root, name), files)
            with open(os.path.join(root, name), "rb") as f:
                content[path] = f.read()
    for path in sorted(content):
        data = content[path]
        entry = {"type": "file", "path": path, "size": len(data), "oid": git_name(data)}
        if len(data) > LARGE:
            entry["oid"] = git_name(b"a pointer to " + path.encode())
            entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data),
                            "pointerSize": 134}
        listing.append(entry)
    listing.insert(1, {"type": "directory", "path": ".eval", "size": 0, "oid": "0" * 40})
    api = os.path.join(folder, "api")
    os.mkdir(api)
    whole = {"id": "Org/Toy", "sha": COMMIT, "siblings": [{"rfilename": p} for p in sorted(content)]}
    # What the hub says of every file beside its content, for clients that ask before they fetch.
    with open(os.path.join(folder, "linked.map"), "w") as f:
        for e in (e for e in listing if e["type"] == "file"):
            oid = e["lfs"]["oid"] if "lfs" in e else e["oid"]
            for uri in ("/Org/Toy/resolve/%s/%s" % (COMMIT, e["path"]), "/" + e["path"]):
                f.write("\"%s\" '\"%s\"';\n" % (uri, oid))
    one = {"type": "file", "path": "config.json", "size": 2, "oid": "0" * 40}
    answers = {
        "Toy.revision": whole, "Toy.tree1": listing[:4], "Toy.tree2": listing[4:],
        # A hub that lies, climbs, or does not know the form of an answer.
        "Liar.revision": whole, "Liar.tree": [dict(one, size=len(content["config.json"]))],
        "Climbs.revision": whole, "Climbs.tree": [one, dict(one, path="a/../../config.json")],
        "Rooted.revision": whole, "Rooted.tree": [dict(one, path="/config.json")],
        "Partly.revision": whole, "Partly.tree": [one, dict(one, path="config.json.part")],
        "Unsized.revision": whole, "Unsized.tree": [dict(one, size=-1)],
        "Unnamed.revision": whole, "Unnamed.tree": [dict(one, oid="../../x")],
        "Vast.revision": whole, "Vast.tree": [dict(one, size=1 << 42)],
        "Empty.revision": whole, "Empty.tree": [],
        "Same.revision": whole,
        "Same.tree": [dict(e, path=p) for e in listing if e["path"] == "config.json"
                      for p in ("config.json", "copies/1.json", "copies/2.json")],
        "Sizes.revision": whole, "Sizes.tree": [one, dict(one, path="x.json", size=3)],
        "Twice.revision": whole, "Twice.tree": [one, one],
        "Twins.revision": whole, "Twins.tree": [one, dict(one, path="Config.json")],
        "Below.revision": whole, "Below.tree": [one, dict(one, path="config.json/x")],
        "Object.revision": whole, "Object.tree": {"error": "no"},
        "Moved.revision": {"sha": "../../etc"}, "Swapped.revision": {"sha": "a" * 40},
        "clef-flash.revision": whole, "clef-flash.tree": listing,
    }
    for name, value in answers.items():
        with open(os.path.join(api, name), "w") as f:
            json.dump(value, f)
    with open(os.path.join(api, "Garbled.revision"), "w") as f:
        f.write("<html>" + "[" * 100000)
    # Other content of the same length, and a file with a coding nobody asked for.
    wrong = os.path.join(folder, "wrong")
    os.mkdir(wrong)
    for path, data in content.items():
        os.makedirs(os.path.dirname(os.path.join(wrong, path)), exist_ok=True)
        with open(os.path.join(wrong, path), "wb") as f:
            f.write(data[:-1] + bytes([data[-1] ^ 1]) if data else data)
    coded = os.path.join(folder, "coded")
    shutil.copytree(files, coded)
    for root, _, names in os.walk(coded):
        for name in names:
            run("gzip", "-k", os.path.join(root, name))
    return content


# ---- nginx --------------------------------------------------------------------------------------

NGINX = """
daemon off; master_process off; worker_processes 1; pid %(folder)s/nginx.pid;
error_log %(folder)s/error.log notice;
events { worker_connections 256; }
http {
    log_format told '$request_method\t$uri\t$http_authorization\t$http_range\t$http_if_range\t$status';
    default_type application/octet-stream;
    client_body_temp_path %(folder)s/t1; proxy_temp_path %(folder)s/t2; fastcgi_temp_path %(folder)s/t3;
    uwsgi_temp_path %(folder)s/t4; scgi_temp_path %(folder)s/t5;
    sendfile on;
    ssl_certificate %(folder)s/server.pem; ssl_certificate_key %(folder)s/server.key;
    map_hash_bucket_size 256;
    map $uri $linked_etag { default ''; include %(folder)s/linked.map; }
    map $http_authorization $may_read { default 0; "Bearer hf_right" 1; }
    server {
        listen 127.0.0.1:%(hub)d ssl; access_log %(folder)s/hub.log told; root %(folder)s/files;
        add_header X-Repo-Commit %(commit)s; add_header X-Linked-Etag $linked_etag;
        location ~ ^/api/models/(Org|Cloudflare)/([A-Za-z-]+)/revision/(main|refs/pr/1|%(commit)s)$ { alias %(folder)s/api/$2.revision; }
        location ~ ^/api/models/(Org|Cloudflare)/([A-Za-z-]+)/tree/%(commit)s$ { alias %(folder)s/api/$2.tree; }
        location = /api/models/Org/Toy/tree/%(commit)s {
            if ($arg_cursor = two) { rewrite ^ /api/tree2 last; }
            rewrite ^ /api/tree1 last;
        }
        location = /api/tree1 { internal; alias %(folder)s/api/Toy.tree1;
            add_header Link '<https://127.0.0.1:%(hub)d/api/models/Org/Toy/tree/%(commit)s?recursive=true&cursor=two>; rel="next"'; }
        location = /api/tree2 { internal; alias %(folder)s/api/Toy.tree2; }
        location ~ ^/api/models/Old/Name/(.*)$ { return 307 /api/models/Org/Toy/$1; }
        location ~ ^/Old/Name/resolve/(.*)$ { return 307 /Org/Toy/resolve/$1; }
        location ^~ /api/models/Org/Gated/ {
            if ($may_read = 0) { add_header X-Error-Message 'Access to model Org/Gated is restricted' always; return 401; }
            rewrite ^/api/models/Org/Gated/(.*)$ /api/models/Org/Toy/$1 last;
        }
        location ~ ^/Org/Gated/resolve/%(commit)s/(.*)$ {
            if ($may_read = 0) { return 401; }
            rewrite ^/Org/Gated/(.*)$ /Org/Toy/$1 last;
        }
        location ~ ^/Org/[A-Za-z]+/resolve/%(commit)s/(.*\\.safetensors)$ { return 302 https://127.0.0.2:%(content)d/blobs/$1?%(signature)s; }
        location ~ ^/Org/Same/resolve/%(commit)s/copies/ { try_files /config.json =404; }
        location ~ ^/Org/[A-Za-z]+/resolve/%(commit)s/(.*)$ { try_files /$1 =404; }
        location / { add_header X-Error-Message 'Repository not found' always; return 404; }
    }
    server {
        listen 127.0.0.2:%(content)d ssl; access_log %(folder)s/content.log told;
        location /blobs/ { if ($args != "%(signature)s") { return 403; } alias %(folder)s/files/; }
    }
    server {
        listen 127.0.0.3:%(mirror)d ssl; listen 127.0.0.3:%(plain)d; access_log %(folder)s/mirror.log told;
        location /good/ { alias %(folder)s/files/; }
        location /slow/ { limit_rate 32k; alias %(folder)s/files/; }
        location /noranges/ { max_ranges 0; alias %(folder)s/files/; }
        location /wrong/ { alias %(folder)s/wrong/; }
        location /coded/ { gzip_static always; alias %(folder)s/coded/; }
        location /gone/ { return 404; }
        location /down/ { return 302 http://127.0.0.3:%(plain)d/good/model.safetensors; }
        location /signed/ { alias %(folder)s/signed/; }
    }
    server { listen 127.0.0.1:%(stranger)d ssl; access_log off; root %(folder)s/files;
             ssl_certificate %(folder)s/stranger.pem; ssl_certificate_key %(folder)s/stranger.key; }
    server { listen 127.0.0.1:%(misnamed)d ssl; access_log off; root %(folder)s/files;
             ssl_certificate %(folder)s/misnamed.pem; ssl_certificate_key %(folder)s/misnamed.key; }
    server { listen 127.0.0.1:%(late)d ssl; access_log off; root %(folder)s/files;
             ssl_certificate %(folder)s/late.pem; ssl_certificate_key %(folder)s/late.key; }
}
"""


def start_nginx(folder):
    ports = {"hub": 1, "content": 2, "mirror": 3, "plain": 3, "stranger": 1, "misnamed": 1, "late": 1}
    ports = {name: free_port("127.0.0.%d" % i) for name, i in ports.items()}
    path = os.path.join(folder, "nginx.conf")
    with open(path, "w") as f:
        f.write(NGINX % dict(ports, folder=folder, commit=COMMIT, signature=SIGNATURE))
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    process = subprocess.Popen([nginx, "-p", folder, "-e", os.path.join(folder, "error.log"), "-c", path],
                               stdin=subprocess.DEVNULL)
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", ports["late"]), 1).close()
            return process, ports
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    process.kill()
    with open(os.path.join(folder, "error.log")) as f:
        sys.exit("nginx did not start: " + f.read())


# ---- the server that misbehaves -----------------------------------------------------------------


class Bad(http.server.BaseHTTPRequestHandler):
    """/MODE/PATH, where PATH names a published file. Each mode counts the requests for each file."""

    protocol_version = "HTTP/1.1"
    content, seen, lock, log = {}, {}, threading.Lock(), None
    urls = {}

    def log_message(self, *_):
        pass

    def tell(self, status):
        h = self.headers
        with self.lock:
            self.log.write("\t".join([self.command, self.path.split("?")[0], h.get("Authorization", "-"),
                                      h.get("Range", "-"), h.get("If-Range", "-"), str(status)]) + "\n")
            self.log.flush()

    def head(self, status, **headers):
        self.tell(status)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def refuse(self, status, **headers):
        self.head(status, Content_Length=0, **headers)

    def cut(self):
        """Ends the connection in the middle."""
        self.wfile.flush()
        self.close_connection = True

    def body(self, data, start, count, tag='"one"', total=None, shift=0):
        """Sends `count` bytes from `start`, announced as if all from there came, then cuts if that
        is not all."""
        size = len(data)
        headers = {"ETag": tag, "Content_Length": size - start}
        if start > 0:
            headers["Content_Range"] = "bytes %d-%d/%s" % (start + shift, size - 1, total or size)
        self.head(206 if start > 0 else 200, **headers)
        self.wfile.write(data[start:start + count])
        if start + count < size:
            self.cut()

    def start_of_range(self, tag='"one"'):
        text = self.headers.get("Range", "")
        if not text.startswith("bytes=") or self.headers.get("If-Range", tag) != tag:
            return 0
        return int(text[6:].split("-")[0])

    def do_GET(self):
        mode, _, path = self.path.split("?")[0].lstrip("/").partition("/")
        data = self.content.get(path)
        method = getattr(self, "mode_" + mode.replace("-", "_"), None)
        if data is None or method is None:
            return self.refuse(404)
        with self.lock:
            nth = self.seen[mode, path] = self.seen.get((mode, path), 0) + 1
        method(nth, path, data)

    # Interrupted, then well: what a resumption has to cope with.

    def mode_short(self, nth, path, data):
        """Ends every body after 100,000 bytes."""
        self.body(data, self.start_of_range(), 100000)

    def mode_unmeasured(self, nth, path, data):
        """Without a Content-Length: half, later all."""
        self.head(200, Connection="close")
        self.wfile.write(data[:len(data) // 2] if nth == 1 else data)
        self.cut()

    def mode_ignores(self, nth, path, data):
        """Half, then the whole with 200 although a range was asked for."""
        self.body(data, 0, len(data) // 2 if nth == 1 else len(data))

    def mode_misplaced(self, nth, path, data):
        """Half, then a range that begins ten bytes late; without a range all is well."""
        start = self.start_of_range()
        if start > 0:
            return self.body(data, start, len(data), shift=10)
        self.body(data, 0, len(data) // 2 if nth == 1 else len(data))

    def mode_resized(self, nth, path, data):
        """Half, then a range of a file of another size."""
        start = self.start_of_range()
        self.body(data, start, len(data) if start else len(data) // 2, total=len(data) + 7)

    def mode_unsatisfied(self, nth, path, data):
        """Half, then 416; without a range all is well."""
        if self.start_of_range() > 0:
            return self.refuse(416, Content_Range="bytes */%d" % (len(data) // 3))
        self.body(data, 0, len(data) // 2 if nth == 1 else len(data))

    def mode_unasked(self, nth, path, data):
        """206 for a request without a range."""
        self.head(206, Content_Length=len(data) - 5, Content_Range="bytes 5-%d/%d" % (len(data) - 1, len(data)))
        self.wfile.write(data[5:])

    def mode_changes(self, nth, path, data):
        """Half of another version, then the right one, with another etag."""
        if nth == 1:
            return self.body(bytes(len(data)), 0, len(data) // 2, tag='"old"')
        self.body(data, self.start_of_range('"new"'), len(data), tag='"new"')

    def mode_mixes(self, nth, path, data):
        """Half of another version; the rest of the right one under the same etag."""
        if nth == 1:
            return self.body(bytes(len(data)), 0, len(data) // 2)
        self.body(data, self.start_of_range(), len(data))

    def mode_weak(self, nth, path, data):
        """Half under a weak etag, then ranges."""
        text = self.headers.get("Range", "")
        start = int(text[6:].split("-")[0]) if text else 0
        self.body(data, start, len(data) if start else len(data) // 2, tag='W/"one"')

    def mode_expires(self, nth, path, data):
        """Redirects to a link that works once."""
        self.refuse(302, Location="%s/link%d/%s" % (self.urls["bad"], nth if nth < 9 else 9, path))

    def link(self, n, path, data):
        with self.lock:
            used = self.seen["link", n, path] = self.seen.get(("link", n, path), 0) + 1
        if used > 1:
            return self.refuse(403)
        start = self.start_of_range()
        self.body(data, start, len(data) // 2 if n == 1 else len(data))

    def mode_link1(self, nth, path, data):
        self.link(1, path, data)

    def mode_link2(self, nth, path, data):
        self.link(2, path, data)

    def mode_link3(self, nth, path, data):
        self.link(3, path, data)

    def mode_expired(self, nth, path, data):
        """Redirects to the content host with a signature that it takes no more, then a good one."""
        self.refuse(302, Location="%s/blobs/%s?%s" % (self.urls["content"], path,
                                                      SIGNATURE if nth > 1 else "sig=old"))

    # Wrong for good.

    def mode_long(self, nth, path, data):
        """More than the file, without a Content-Length."""
        self.head(200, Connection="close")
        self.wfile.write(data + b"more")
        self.cut()

    def mode_longer(self, nth, path, data):
        self.head(200, Content_Length=len(data) + 4)
        self.wfile.write(data + b"more")

    def mode_shorter(self, nth, path, data):
        self.head(200, Content_Length=len(data) - 4)
        self.wfile.write(data[:-4])

    def mode_headers(self, nth, path, data):
        self.tell(200)
        self.send_response(200)
        for i in range(80):
            self.send_header("X-%d" % i, "x" * 1000)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def mode_loop(self, nth, path, data):
        self.refuse(302, Location="/loop/" + path)

    def mode_hops5(self, nth, path, data):
        self.refuse(302, Location="/hops4/" + path)

    def mode_hops4(self, nth, path, data):
        self.refuse(301, Location="../hops3/" + path)

    def mode_hops3(self, nth, path, data):
        self.refuse(303, Location="%s/hops2/%s" % (self.urls["bad"], path))

    def mode_hops2(self, nth, path, data):
        self.refuse(307, Location="//%s/hops1/%s" % (self.urls["bad"][8:], path))

    def mode_hops1(self, nth, path, data):
        self.refuse(308, Location="/whole/" + path)

    def mode_hops6(self, nth, path, data):
        self.refuse(302, Location="/hops5/" + path)

    def mode_ftp(self, nth, path, data):
        self.refuse(302, Location="ftp://127.0.0.4/" + path)

    def mode_file(self, nth, path, data):
        self.refuse(302, Location="file:///etc/hostname")

    def mode_named(self, nth, path, data):
        self.refuse(302, Location="https://name:word@127.0.0.3/" + path)

    def mode_whole(self, nth, path, data):
        self.body(data, self.start_of_range(), len(data))

    def mode_away(self, nth, path, data):
        self.refuse(302, Location="%s/good/%s" % (self.urls["mirror"], path))

    # Busy, slow, broken.

    def mode_busy(self, nth, path, data):
        if nth == 1:
            return self.refuse(429, Retry_After=1)
        self.mode_whole(nth, path, data)

    def mode_later(self, nth, path, data):
        self.refuse(429, Retry_After=86400)

    def mode_broken(self, nth, path, data):
        if nth <= 3:
            return self.refuse((500, 503, 408)[nth - 1])
        self.mode_whole(nth, path, data)

    def mode_down(self, nth, path, data):
        self.refuse(502)

    def mode_denied(self, nth, path, data):
        self.refuse(403, X_Error_Message="not for you\x1b[31m")

    def mode_stalls(self, nth, path, data):
        """Stops early for longer than anyone waits; the next time all is well."""
        start = self.start_of_range()
        if nth > 1:
            return self.body(data, start, len(data))
        self.head(200, Content_Length=len(data), ETag='"one"')
        self.wfile.write(data[:1000])
        self.wfile.flush()
        time.sleep(20)
        self.cut()

    def mode_drips(self, nth, path, data):
        """Ten bytes a request."""
        self.body(data, self.start_of_range(), 10)


def start_bad(folder, content, urls):
    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_):
            pass  # a client that goes away is what is tested

        def finish_request(self, request, address):
            request.settimeout(30)
            with self.context.wrap_socket(request, server_side=True) as secure:
                super().finish_request(secure, address)

    server = Server(("127.0.0.4", 0), Bad)
    server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.context.load_cert_chain(os.path.join(folder, "server.pem"), os.path.join(folder, "server.key"))
    urls["bad"] = "https://127.0.0.4:%d" % server.server_port
    Bad.content, Bad.urls = content, urls
    Bad.log = open(os.path.join(folder, "bad.log"), "a")
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main():
    folder, model = os.path.abspath(sys.argv[1]), sys.argv[2]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # and nginx with it
    make_certificates(folder)
    content = publish(folder, model)
    nginx, ports = start_nginx(folder)
    try:
        urls = {name: "https://127.0.0.%d:%d" % (i, ports[name]) for name, i in
                (("hub", 1), ("content", 2), ("mirror", 3), ("stranger", 1), ("misnamed", 1), ("late", 1))}
        urls["plain"] = "http://127.0.0.3:%d" % ports["plain"]
        start_bad(folder, content, urls)
        for name, url in urls.items():
            print(name, url)
        print("ready", "yes", flush=True)
        sys.stdin.read()
    finally:
        nginx.terminate()
        nginx.wait()


main()
