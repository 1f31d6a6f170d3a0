#!/usr/bin/env python3
"""Half an hour of everything at once against `clef serve`, and a report of what came of it.

    bench/soak.py [--minutes 30] [--report docs/soak.md] [--program ./clef] [--alone ./clef]
                  [--connections 64] [--no-fault] [--seed 1]

Starts the server with a toy checkpoint on a free loopback port, and sends it for that long from 64
connections: valid requests of all kinds and sizes, invalid ones, oversized ones, broken framing, clients
that dawdle, clients that leave, and now and then a burst far above the queue. Beside that the key file and
the log are changed with SIGHUP, and once the engine's thread runs out of memory: its process gets no more
address space for some seconds (prlimit), which no line of the server knows of.

What has to hold, else the exit status is 1:
  - every valid request is answered once, with its own id, by the bytes that it gets when it is asked alone
    of a server without caches, or is refused with 429 (full queue), or with 503 while memory is short;
  - every other request gets the status that the protocol says, and no status is 5xx but those 503;
  - memory that no file stands behind rises by at most 2 % after the first third of the time, by when the stored
    states have long filled the little room they get here, and the number of open descriptors is the same
    whenever nobody is connected;
  - 200 clients that send a byte and wait leave a normal request answered within a second;
  - SIGTERM ends the server with exit status 0.

Memory and descriptors are read at pauses, about forty of them, when all clients have closed. Needs nothing
but Python; `make all tools` first, for the program and the measure of kept answers."""

import argparse
import base64
import collections
import contextlib
import json
import os
import random
import re
import resource
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATIENCE = 120  # seconds until an answer counts as lost
QUEUE, HEAD_SECONDS, MAX_BODY, MAX_LENGTH = 48, 4, 1 << 20, 2000
CACHE_BYTES = 8 << 20  # full after some dozen requests
GIVE_BACK_SECONDS = 6  # the server gives freed memory back to the system every 5
ENOUGH_MINUTES = 10  # for a judgement about memory
OPTIONS = ["--queue", QUEUE, "--head-seconds", HEAD_SECONDS, "--idle-seconds", 10, "--max-body", MAX_BODY,
           "--max-length", MAX_LENGTH, "--cache-bytes", CACHE_BYTES, "--answer-cache-bytes", 1 << 19,
           "--answer-cache-seconds", 5, "--max-connections", 600, "--chunk", 128]
KEY, OTHER_KEYS = "the-key", ("first-key", "second-key")


Reading = collections.namedtuple("Reading", "memory descriptors cache")  # at a pause; bytes of stored states


class Wrong(Exception):
    """Something that must not happen."""


# ---- a connection -------------------------------------------------------------------------------


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""
        self.closing = False  # the last answer said so

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def more(self):
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        except TimeoutError:
            raise Wrong("no answer within %d s" % PATIENCE) from None
        self.rest += data
        return data

    def answer(self):
        """Status, headers and body of the next answer; None at the end of the connection."""
        while b"\r\n\r\n" not in self.rest:
            if not self.more():
                if self.rest:
                    raise Wrong("an answer cut short: %r" % self.rest[:200])
                return None
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        line, *lines = head.decode("latin-1").split("\r\n")
        headers = {k.lower(): v for k, v in (h.split(": ", 1) for h in lines)}
        status = int(line.split(" ")[1])
        if status == 100:
            return self.answer()
        self.closing = headers.get("connection") == "close"
        length = int(headers["content-length"])
        while len(self.rest) < length:
            if not self.more():
                raise Wrong("a body cut short: %r" % self.rest[:200])
        body, self.rest = self.rest[:length], self.rest[length:]
        return status, headers, body

    def quiet(self):
        """That nothing comes which nobody asked for."""
        if self.rest or (select.select([self.socket], [], [], 0)[0] and self.more()):
            raise Wrong("bytes after the answer: %r" % self.rest[:200])

    def closed(self):
        if self.answer() is not None:
            raise Wrong("a second answer where the connection had to end")


def head(path="/v1/systemone", length=None, *lines, key=KEY, method="POST"):
    lines = list(lines) + (["Authorization: Bearer " + key] if key else [])
    if length is not None:
        lines.append("Content-Length: %d" % length)
    return "\r\n".join(["%s %s HTTP/1.1" % (method, path), "Host: localhost"] + lines + ["", ""]).encode()


# ---- the server ---------------------------------------------------------------------------------


class Server:
    def __init__(self, program, folder, model, *options):
        self.keys, self.log, self.model = os.path.join(folder, "keys"), os.path.join(folder, "log"), model
        self.write_keys(OTHER_KEYS[0])
        # It is ready when its log says so, which the log of an earlier one would too.
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.log)
        self.process = subprocess.Popen(
            [program, "serve", "--model", model, "--port", "0", "--log", self.log, "--api-key-file", self.keys]
            + [str(o) for o in options])
        while True:
            text = open(self.log).read() if os.path.exists(self.log) else ""
            if "ready after" in text and "listens on http://" in text:
                break
            if self.process.poll() is not None:
                sys.exit("soak: the server did not start")
            time.sleep(0.05)
        self.port = int(re.search(r"listens on http://\S*:(\d+)", text)[1])

    def write_keys(self, other):
        with open(self.keys + ".part", "w") as f:
            f.write("%s\n%s\n" % (KEY, other))
        os.chmod(self.keys + ".part", 0o600)
        os.replace(self.keys + ".part", self.keys)

    def ask(self, data):
        with Connection(self.port) as c:
            c.send(data)
            return c.answer()

    def get(self, path):
        return self.ask(head(path, method="GET"))[2].decode()

    def metric(self, name):
        found = re.search("^" + re.escape(name) + r" (\S+)$", self.get("/metrics"), re.M)
        return float(found[1]) if found else 0.0

    def memory(self):
        """Bytes that no file stands behind."""
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(r"RssAnon:\s+(\d+) kB", f.read())[1]) << 10

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


# ---- requests whose answers are known -----------------------------------------------------------

WORDS = ("invoice box open charged twice refund outage late parcel key lost angry thanks today tomorrow Grüße "
         "ответ 漢字 🙂 price plan 12 -3.5 \"quoted\" <tag>").split()


def make_request(rng, n_words, pictures):
    text = " ".join(rng.choice(WORDS) for _ in range(n_words))
    state = rng.choice([text, {"subject": text[:40], "body": text}, [{"type": "text", "text": text}]])
    questions = {}
    for i in range(rng.randint(1, 5)):
        kind = rng.choice(["noul", "choice", "score"])
        q = {"type": kind, "instructions": rng.choice(["Is it %s?" % rng.choice(WORDS), None, {"task": "Pick"}])}
        if kind == "choice":
            n = 255 if rng.random() < 0.02 else rng.randint(1, 12)
            q["criteria"] = {"%s %d" % (rng.choice(WORDS), k): rng.choice([None, "as said"]) for k in range(n)}
        elif kind == "score":
            q["criteria"] = ["level %d" % k for k in range(rng.randint(1, 10))]
        questions["%s %d" % (rng.choice(WORDS), i)] = q
    request = {"model": rng.choice(["clef-flash", "jev-latest"]), "state": state, "questions": questions}
    if pictures and rng.random() < 0.15:
        request["images"] = [rng.choice(pictures) for _ in range(rng.randint(1, 2))]
    return json.dumps(request, ensure_ascii=False).encode()


class Known:
    """Bodies and the answers that they get alone."""

    def __init__(self, server, rng, n):
        pictures = []
        for name in ("rgb8.png", "420.jpg", "lossy.webp"):
            with open(os.path.join(ROOT, "testdata", "media", name), "rb") as f:
                pictures.append("data:image/%s;base64,%s" % (name.split(".")[1], base64.b64encode(f.read()).decode()))
        self.cases = []
        while len(self.cases) < n:
            # Mostly short, some long: what a queue of real requests is like.
            body = make_request(rng, int(2 ** rng.uniform(2, 8)), pictures)
            status, _, answer = server.ask(head(length=len(body)) + body)
            if status == 200:
                self.cases.append((body, answer))
            elif status != 413:
                raise Wrong("asked alone: %d %r for %r" % (status, answer, body))


# ---- traffic ------------------------------------------------------------------------------------


class Soak:
    def __init__(self, server, known, bursts, connections):
        self.server, self.known, self.bursts, self.n = server, known.cases, bursts.cases, connections
        self.lock = threading.Lock()       # guards the four below
        self.counts = collections.defaultdict(collections.Counter)  # kind -> status -> how many
        self.times = []                    # seconds of valid requests that were answered
        self.wrong = []
        self.n_valid = 0
        self.go, self.stop = threading.Event(), False
        self.resting = threading.Semaphore(0)
        self.loaded = []                   # bytes of memory, every second in which there was traffic
        self.short_of_memory = False       # or was, since the last pause

    def count(self, kind, status, seconds=None):
        with self.lock:
            self.counts[kind][status] += 1
            if seconds is not None:
                self.times.append(seconds)

    def fail(self, kind, what):
        with self.lock:
            self.wrong.append("%s: %s" % (kind, what))

    # Each of these is one kind of client; `c` is its connection, which is closed if it returns False.

    def check(self, kind, got, wanted, ident=None, began=None):
        """A valid request's answer."""
        if got is None:
            raise Wrong("no answer")
        status, headers, body = got
        # A connection for which there is no memory is refused before its request is read.
        unread = status == 503 and self.short_of_memory and headers.get("connection") == "close"
        if ident is not None and not unread and headers.get("x-typesafe-request-id") != ident:
            raise Wrong("the answer to another request: %s" % headers)
        if status == 200:
            if body != wanted:
                raise Wrong("answered %r, alone %r" % (body[:300], wanted[:300]))
        elif not (status == 429 or (status == 503 and self.short_of_memory)):
            raise Wrong("status %d: %r" % (status, body[:300]))
        elif not headers.get("retry-after", "").isdigit():
            raise Wrong("status %d without Retry-After" % status)
        self.count(kind, status, time.monotonic() - began if status == 200 and began else None)
        if status != 200 and kind != "burst":
            time.sleep(0.2)  # who is told to come back later does, only sooner than told

    def valid(self, rng, c, cases=None, kind="valid"):
        body, wanted = rng.choice(cases or self.known)
        ident = "soak-%016x" % rng.getrandbits(64)
        with self.lock:
            self.n_valid += 1
        began = time.monotonic()
        c.send(head("/v1/systemone", len(body), "X-Request-Id: " + ident) + body)
        self.check(kind, c.answer(), wanted, ident, began)
        c.quiet()
        return True

    def chunked(self, rng, c):
        body, wanted = rng.choice(self.known)
        with self.lock:
            self.n_valid += 1
        c.send(head("/v1/systemone", None, "Transfer-Encoding: chunked"))
        at = 0
        while at < len(body):
            n = rng.randint(1, 2000)
            c.send(b"%x\r\n%s\r\n" % (len(body[at:at + n]), body[at:at + n]))
            at += n
        c.send(b"0\r\n\r\n")
        self.check("chunked", c.answer(), wanted)
        return True

    def pipelined(self, rng, c):
        cases = [rng.choice(self.known) for _ in range(rng.randint(2, 8))]
        with self.lock:
            self.n_valid += len(cases)
        c.send(b"".join(head(length=len(body)) + body for body, _ in cases))
        for i, (_, wanted) in enumerate(cases):
            self.check("pipelined", c.answer(), wanted)
            if c.closing:
                with self.lock:  # the others are told by the connection's end
                    self.n_valid -= len(cases) - i - 1
                return False
        c.quiet()
        return True

    def expecting(self, rng, c):
        body, wanted = rng.choice(self.known)
        with self.lock:
            self.n_valid += 1
        c.send(head("/v1/systemone", len(body), "Expect: 100-continue"))
        while b"\r\n\r\n" not in c.rest and c.more():
            pass
        if self.short_of_memory and c.rest.startswith(b"HTTP/1.1 503 "):
            self.check("100-continue", c.answer(), wanted)
            return False
        if not c.rest.startswith(b"HTTP/1.1 100 "):
            raise Wrong("wanted 100 Continue, got %r" % c.rest[:200])
        c.send(body)
        self.check("100-continue", c.answer(), wanted)
        return True

    def envelope(self, rng, c):
        body, wanted = rng.choice(self.known)
        with self.lock:
            self.n_valid += 1
        c.send(head("/client/v4/accounts/a/ai/run/@cf/cloudflare/clef-flash", len(body)) + body)
        status, headers, got = c.answer() or (0, {}, b"")
        if status == 200:
            got = json.loads(got)
            if not got["success"] or got["result"] != json.loads(wanted):
                raise Wrong("the envelope holds %r" % got)
        self.check("envelope", (status, headers, wanted), wanted)
        return True

    def batch(self, rng, c):
        cases = [rng.choice(self.known) for _ in range(rng.randint(1, 6))]
        body = b"[" + b",".join(b for b, _ in cases) + b"]"
        with self.lock:
            self.n_valid += 1
        c.send(head("/v1/systemone/batch", len(body)) + body)
        status, headers, got = c.answer() or (0, {}, b"")
        wanted = [json.loads(w) for _, w in cases]
        if status == 200 and json.loads(got) != wanted:
            raise Wrong("the batch holds %r" % got[:300])
        self.check("batch", (status, headers, b""), b"")
        return True

    def other_route(self, rng, c):
        path = rng.choice(["/health", "/ready", "/metrics", "/v1/models", "/openapi.json", "/", "/v1/models/clef-flash"])
        c.send(head(path, method="GET"))
        self.expect("GET", c.answer(), 200)
        return True

    def expect(self, kind, got, *statuses):
        if got is None or (got[0] not in statuses and not (got[0] == 503 and self.short_of_memory)):
            raise Wrong("wanted %s, got %r" % (statuses, got))
        self.count(kind, got[0])

    def invalid(self, rng, c):
        good = self.known[0][0]
        body, status, path, lines, options = rng.choice([
            (b"{", 422, None, (), {}), (b"\xff" + good, 422, None, (), {}), (good + b"x", 422, None, (), {}),
            (b"[" * 5000, 422, None, (), {}), (b'{"state":null,"questions":{"a":{"type":"noul"}}}', 422, None, (), {}),
            (b'{"state":"","questions":{}}', 422, None, (), {}),
            (b'{"state":"","images":["aGk="],"questions":{"a":{"type":"noul"}}}', 422, None, (), {}),
            (b'{"state":"","questions":{"a":{"type":"boolean"}}}', 422, None, (), {}),
            (b'{"model":"gpt-x","state":"","questions":{"a":{"type":"noul"}}}', 400, None, (), {}),
            (good, 404, "/nowhere", (), {}), (good, 405, "/health", (), {}), (good, 401, None, (), {"key": "wrong"}),
            (good, 401, None, (), {"key": None}), (good, 403, None, ("Origin: https://elsewhere.example",), {}),
            (good, 415, None, ("Content-Encoding: gzip",), {})])
        c.send(head(path or "/v1/systemone", len(body), *lines, **options) + body)
        self.expect("invalid", c.answer(), status)
        return False

    def oversized(self, rng, c):
        if rng.random() < 0.5:
            c.send(head(length=MAX_BODY + 1 + rng.randint(0, 1 << 40)) + b"{" * rng.randint(0, 100000))
            self.expect("oversized", c.answer(), 413)
            return False
        body = json.dumps({"state": "7 " * MAX_LENGTH, "questions": {"a": {"type": "noul"}}}).encode()
        c.send(head(length=len(body)) + body)
        self.expect("oversized", c.answer(), 413)
        return True

    def framing(self, rng, c):
        smuggled = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
        c.send(rng.choice([
            head("/v1/systemone", 5, "Transfer-Encoding: chunked") + b"0\r\n\r\n" + smuggled,
            head("/v1/systemone", 5, "Content-Length: 6") + b"hello" + smuggled,
            head("/v1/systemone", None, "Transfer-Encoding: chunked") + b"zz\r\n" + smuggled,
            head("/v1/systemone", None, "Content-Length: -1") + smuggled,
            b"POST /v1/systemone HTTP/1.1\nHost: localhost\n\n" + smuggled,
            head("/v1/systemone", 0, "X: a\r\n folded") + smuggled,
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + smuggled]))
        self.expect("framing", c.answer(), 400)
        c.closed()
        return False

    def dawdling(self, rng, c):
        """Slow, but within the limits: answered. Too slow: 408, also when it is the machine that keeps us from sending."""
        began = time.monotonic()
        body, wanted = rng.choice(self.known)
        data = head(length=len(body)) + body
        if rng.random() < 0.3:
            c.send(data[:rng.randint(1, len(data) - 1)])
            self.expect("too slow", c.answer(), 408)
            c.closed()
            return False
        with self.lock:
            self.n_valid += 1
        cuts = sorted(rng.randint(0, len(data)) for _ in range(4))
        for a, b in zip([0] + cuts, cuts + [len(data)]):
            c.send(data[a:b])
            time.sleep(HEAD_SECONDS * 0.1)
        took, got = time.monotonic() - began, c.answer()
        if took > HEAD_SECONDS - 1 and got is not None and got[0] == 408:
            with self.lock:
                self.n_valid -= 1
            self.count("too slow", 408)
            return False
        self.check("slow", got, wanted)
        return True

    def leaving(self, rng, c):
        """Half a request, or a whole one whose answer nobody reads."""
        body, _ = rng.choice(self.bursts)
        data = head(length=len(body)) + body
        c.send(data[:rng.choice([rng.randint(1, len(data) - 1), len(data)])])
        time.sleep(rng.choice([0, 0.001, 0.01]))
        if rng.random() < 0.3:
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
        self.count("left", 0)
        return False

    KINDS = [(valid, 45), (chunked, 5), (pipelined, 5), (expecting, 3), (envelope, 4), (batch, 4), (other_route, 5),
             (invalid, 12), (oversized, 4), (framing, 4), (dawdling, 3), (leaving, 6)]

    def client(self, seed):
        rng = random.Random(seed)
        kinds, weights = zip(*self.KINDS)
        while not self.stop:
            if not self.go.is_set():
                self.resting.release()
                self.go.wait()
                continue
            kind = kinds[0]
            try:
                with Connection(self.server.port) as c:
                    for _ in range(rng.randint(1, 20)):
                        kind = rng.choices(kinds, weights)[0]
                        if not kind(self, rng, c) or c.closing or not self.go.is_set():
                            break
            except Exception as e:  # whatever a server may send that breaks a client
                if self.server.process.poll() is not None:
                    return
                self.fail(kind.__name__, repr(e))

    def burst(self, seed):
        """Three times as many long requests as there are places, at once."""
        rng = random.Random(seed)
        cases = rng.sample(self.bursts, min(len(self.bursts), 3 * QUEUE))

        def one(case):
            try:
                with Connection(self.server.port) as c:
                    self.valid(rng, c, [case], "burst")
            except (Wrong, OSError) as e:
                self.fail("burst", repr(e))
        threads = [threading.Thread(target=one, args=(case,)) for case in cases]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def hang_up(self, other):
        """New keys and a new log; both have to be in use soon."""
        self.server.write_keys(other)
        os.replace(self.server.log, self.server.log + ".old")
        self.server.process.send_signal(signal.SIGHUP)
        for _ in range(PATIENCE * 20):
            status = self.server.ask(head("/v1/models", method="GET", key=other))[0]
            if status == 200 and os.path.exists(self.server.log):
                break
            time.sleep(0.05)
        else:
            self.fail("SIGHUP", "the new key or log was never taken")
        old = OTHER_KEYS[other == OTHER_KEYS[0]]
        self.expect("old key", self.server.ask(head("/v1/models", method="GET", key=old)), 401)

    def run_out_of_memory(self, seconds=5):
        """The engine's thread, in the middle of the traffic, gets no more memory."""
        pid = self.server.process.pid
        with open("/proc/%d/statm" % pid) as f:
            size = int(f.read().split()[0]) * resource.getpagesize()
        self.short_of_memory = True
        before = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (size - (64 << 20), before[1]))
        until = time.monotonic() + seconds
        seed = 0
        while time.monotonic() < until:
            self.burst(seed)
            seed += 1
        resource.prlimit(pid, resource.RLIMIT_AS, before)

    def pause(self):
        """Sends the clients home, and reads a server that nobody talks to."""
        self.go.clear()
        for _ in range(self.n):
            for _ in range(2 * PATIENCE):
                if self.server.process.poll() is not None:
                    raise Wrong("the server ended by itself: %d" % self.server.process.returncode)
                if self.resting.acquire(timeout=1):
                    break
            else:
                raise Wrong("a client never came to rest")
        # The one connection is that which asks.
        for _ in range(PATIENCE * 10):
            if self.server.metric("clef_connections") <= 1 and self.server.metric("clef_running") == 0:
                break
            time.sleep(0.1)
        else:
            self.fail("pause", "connections or requests stayed: %g, %g" % (
                self.server.metric("clef_connections"), self.server.metric("clef_running")))
        time.sleep(GIVE_BACK_SECONDS)
        reading = Reading(self.server.memory(), self.server.descriptors(),
                          self.server.metric("clef_prefix_cache_bytes"))
        self.short_of_memory = False
        return reading

    def watch_memory(self):
        while not self.stop:
            if self.go.is_set():
                self.loaded.append(self.server.memory())
            time.sleep(1)

    def run(self, minutes, fault, say):
        readings = []
        end = time.monotonic() + 60 * minutes
        length = 60 * minutes / 40
        threads = [threading.Thread(target=self.client, args=(i,), daemon=True) for i in range(self.n)]
        threads.append(threading.Thread(target=self.watch_memory, daemon=True))
        for t in threads:
            t.start()
        self.go.set()
        n, failed_once = 0, False
        while time.monotonic() < end:
            n += 1
            until = time.monotonic() + length
            self.hang_up(OTHER_KEYS[n % 2])
            self.burst(n)
            if fault and not failed_once and time.monotonic() > end - 30 * minutes:
                failed_once = True
                self.run_out_of_memory()
            time.sleep(max(0, until - time.monotonic()))
            readings.append(self.pause())
            with self.lock:
                say("%3d  %d valid, %d answered, memory %.1f MiB, %d descriptors, %d wrong" % (
                    n, self.n_valid, len(self.times), readings[-1].memory / 2**20, readings[-1].descriptors, len(self.wrong)))
            self.go.set()
        self.pause()
        self.stop = True
        self.go.set()
        for t in threads:
            t.join()
        return readings


# ---- after the traffic --------------------------------------------------------------------------


def slow_loris(server, known, n=200):
    """Seconds that a normal request takes, the slowest of five, while n clients have sent a byte."""
    lazy = [Connection(server.port) for _ in range(n)]
    for i, c in enumerate(lazy):
        c.send(b"P" if i % 2 else head(length=10) + b"{")
    times = []
    for body, wanted in known.cases[:5]:
        began = time.monotonic()
        got = server.ask(head(length=len(body)) + body)
        times.append(time.monotonic() - began)
        if got[0] != 200 or got[2] != wanted:
            raise Wrong("a wrong answer beside slow clients: %r" % (got,))
    for c in lazy:
        got = c.answer()
        if got is None or got[0] != 408:
            raise Wrong("a slow client got %r, wanted 408" % (got,))
        c.__exit__()
    return max(times)


def kept_answers(program, folder, model):
    """What build/bench/http_load says of an answer that is kept, with 64 connections."""
    tool = os.path.join(ROOT, "build", "bench", "http_load")
    if not os.path.exists(tool):
        return None
    process = subprocess.Popen([program, "serve", "--model", model, "--port", "0", "--log", folder + "/load"])
    try:
        for _ in range(1000):
            text = open(folder + "/load").read() if os.path.exists(folder + "/load") else ""
            if "ready after" in text and "listens on http://" in text:
                break
            time.sleep(0.05)
        port = re.search(r"listens on http://\S*:(\d+)", text)[1]
        done = subprocess.run([tool, port, os.path.join(ROOT, "examples", "request.json"), "64", "5"],
                              capture_output=True, text=True)
        return (done.stdout + done.stderr).strip()
    finally:
        process.terminate()
        process.wait()


def growth(series):
    """After the first third, from the median of the first fifth to that of the last: percent, and both."""
    settled = series[len(series) // 3:]
    fifth = max(1, len(settled) // 5)
    first, last = statistics.median(settled[:fifth]), statistics.median(settled[-fifth:])
    return 100 * (last / first - 1), first / 2**20, last / 2**20


def report(o, soak, readings, loris_s, kept, status, load, took, began):
    """The text, and whether all is well."""
    grown = growth([r.memory for r in readings])
    descriptors = sorted({r.descriptors for r in readings})
    full = statistics.median(r.cache for r in readings[len(readings) // 3:]) / CACHE_BYTES
    refused = collections.Counter()
    answered = 0
    valid_kinds = ("valid", "chunked", "pipelined", "100-continue", "envelope", "batch", "slow", "burst")
    for kind in valid_kinds:
        answered += soak.counts[kind][200]
        refused.update({s: n for s, n in soak.counts[kind].items() if s != 200})
    lost = soak.n_valid - answered - sum(refused.values())
    times = sorted(soak.times) or [0]
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    verdicts = [
        ("every valid request answered once and as it is alone, or refused with 429, or 503 while memory was short",
         "%d asked, %d answered, %s refused, %d lost" % (
             soak.n_valid, answered, " and ".join("%d with %d" % (n, s) for s, n in sorted(refused.items())) or "0", lost),
         lost == 0 and not soak.wrong),
        ("every other request got its status; no 5xx but those 503", "%d things went wrong" % len(soak.wrong),
         not soak.wrong),
        ("some were refused with 429, some with 503 while memory was short, and the server went on",
         "%d, %d" % (refused[429], refused[503]), refused[429] > 0 and (o.no_fault or refused[503] > 0)),
        ("memory rises by at most 2 % after the first third", "%+.2f %% (%.1f to %.1f MiB, medians of a fifth)" % grown,
         grown[0] <= 2 if o.minutes >= ENOUGH_MINUTES else None),
        ("the stored states had reached their bound by then", "%.1f %% of it, the median from there on" % (100 * full),
         full > 0.9 if o.minutes >= ENOUGH_MINUTES else None),
        ("descriptors the same at every pause", ", ".join(map(str, descriptors)), len(descriptors) == 1),
        ("a normal request beside 200 clients that dawdle, under a second", "%.3f s, the slowest of five" % loris_s,
         loris_s < 1),
        ("SIGTERM ends with exit status 0", str(status), status == 0),
    ]
    lines = [
        "# Soak", "",
        "Written by `%s`, which says in its head what it sends and what has to hold." % " ".join(
            ["bench/soak.py"] + sys.argv[1:]), "",
        "%s, commit %s, on %d cores (%s); load average %.1f before. It took %.1f minutes with %d connections; server: "
        "`clef serve --model %s %s`." % (
            began, commit, os.cpu_count(), cpu[1] if cpu else "unknown", load, took / 60, o.connections,
            os.path.relpath(soak.server.model, ROOT), " ".join(map(str, OPTIONS))), "",
        "| what has to hold | measured | |", "| --- | --- | --- |"]
    words = {True: "holds", False: "**does not hold**", None: "too short a run to say"}
    lines += ["| %s | %s | %s |" % (what, value, words[good]) for what, value, good in verdicts]
    if kept:
        lines += ["", "Kept answers afterwards, `build/bench/http_load` with 64 connections on the same cores: %s." %
                  "; ".join(kept.splitlines())]
    lines += ["", "Valid requests alone on their connection took %.0f ms at the median, %.0f at the 99th percentile, %.1f s at "
              "most, most of it waiting for their turn." % (1000 * statistics.median(times),
                                                          1000 * times[int(len(times) * 0.99)], times[-1]), "",
              "| kind | status: how many |", "| --- | --- |"]
    lines += ["| %s | %s |" % (kind, ", ".join("%s: %d" % (s or "not waited for", n) for s, n in sorted(c.items())))
              for kind, c in sorted(soak.counts.items())]
    lines += ["", "Memory that no file stands behind, MiB, at each pause: " +
              ", ".join("%.1f" % (r.memory / 2**20) for r in readings) + ".", "",
              "The same every second between the pauses, under load: %+.2f %% (%.1f to %.1f MiB, medians of a fifth); "
              "%.1f at most." % (*growth(soak.loaded), max(soak.loaded) / 2**20)]
    if soak.wrong:
        lines += ["", "What went wrong (at most 20):", ""] + ["    " + w[:300] for w in soak.wrong[:20]]
    return "\n".join(lines) + "\n", all(good is not False for _, _, good in verdicts)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--minutes", type=float, default=30)
    p.add_argument("--connections", type=int, default=64)
    p.add_argument("--program", default=os.path.join(ROOT, "clef"))
    p.add_argument("--alone", help="a program that answers alone what --program has to answer, when that is a slow one")
    p.add_argument("--report", default=os.path.join(ROOT, "docs", "soak.md"), help="a file, or - for standard output")
    p.add_argument("--no-fault", action="store_true", help="leave memory alone: sanitizers cannot do without")
    p.add_argument("--seed", type=int, default=1)
    o = p.parse_args()
    say = lambda text: print(text, file=sys.stderr, flush=True)
    model = os.path.join(ROOT, "testdata", "toy-vision")
    load, began, start = os.getloadavg()[0], time.strftime("%Y-%m-%d"), time.monotonic()
    rng = random.Random(o.seed)
    with tempfile.TemporaryDirectory(prefix="clef-soak-") as folder:
        say("asking each request alone")
        alone = Server(o.alone or o.program, folder, model, "--max-length", MAX_LENGTH, "--cache-bytes", 0, "--answer-cache-bytes", 0,
                       "--max-body", MAX_BODY)
        known = Known(alone, rng, 300)
        bursts = Known(alone, rng, 0)
        for i in range(200):
            body = json.dumps({"state": "%d " % i + "7" * 1800, "questions": {"q": {"type": "noul"}}}).encode()
            bursts.cases.append((body, alone.ask(head(length=len(body)) + body)[2]))
        alone.stop()
        say("soaking")
        server = Server(o.program, folder, model, *OPTIONS)
        soak = Soak(server, known, bursts, o.connections)
        try:
            readings = soak.run(o.minutes, not o.no_fault, say)
            loris_s = slow_loris(server, known)
        finally:
            status = server.stop()
        kept = kept_answers(o.program, folder, model)
    text, good = report(o, soak, readings, loris_s, kept, status, load, time.monotonic() - start, began)
    if o.report == "-":
        print(text)
    else:
        with open(o.report, "w") as f:
            f.write(text)
        say("wrote " + o.report)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
