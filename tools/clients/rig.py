"""What the client runs share: servers of their own, plain requests, and the count of what passed.

Every *_test.py here is a program for tools/run_tests: it says of its tests what cmocka would say. A
test is a function of the module whose name is a sentence; it fails by raising. Servers end with the
program, whatever happens.
"""

import atexit
import contextlib
import ctypes
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("CLEF", os.path.join(ROOT, "clef"))
ONE_WAITS = ("--queue", 1, "--chunk", 1, "--batch-tokens", 1)
PATIENCE = 60  # seconds for anything that takes one on an idle machine

# Packages that would talk to their own hosts: whatever a test does not set fails, and loopback needs
# no proxy.
for name in list(os.environ):
    if re.match(r"(TYPESAFE|CLEF|CLOUDFLARE|HTTPS?|ALL|NO)_|(https?|all|no)_proxy", name):
        del os.environ[name]


def testdata(*parts):
    return os.path.join(ROOT, "testdata", *parts)


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Server:
    """`clef serve` on a free port; `options` are its own."""

    def __init__(self, *options, model="toy-r2"):
        self.log = tempfile.NamedTemporaryFile(prefix="clef-clients-")
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--model", testdata(model), "--port", "0", "--log", self.log.name]
            + [str(o) for o in options], preexec_fn=die_with_parent)
        atexit.register(self.stop)
        self.await_log("ready after")  # which another thread says: either may come first
        text = self.await_log("listens on http://")
        self.port = int(re.search(r"listens on http://\S*:(\d+)", text)[1])
        self.url = "http://127.0.0.1:%d" % self.port

    def await_log(self, words):
        def text_with_words():
            with open(self.log.name) as f:
                text = f.read()
            assert words in text or self.process.poll() is None, "the server ended: " + text
            return words in text and text
        return await_true(text_with_words, "in the log: " + words)

    def ask(self, body, path="/v1/systemone", headers=None, method="POST"):
        """Status, headers and body of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, headers or {})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()

    def hold(self, body):
        """Asks on a connection of its own and reads nothing; closing that takes the request back."""
        data = json.dumps(body).encode()
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.sendall(b"POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                           % len(data) + data)
        return connection

    def fill_queue(self):
        """With ONE_WAITS: until the connections that it gives are closed, or for minutes, one request runs
        and one waits, and no other may."""
        holders = []
        for i, metric in enumerate(("clef_running", "clef_queue_depth")):
            holders.append(self.hold({"state": "%d " % i + "7" * 15000, "questions": {"q": {"type": "noul"}}}))
            self.await_metric(metric, 1)
        return holders

    def answer(self, body):
        status, _, text = self.ask(body)
        assert status == 200, (status, text)
        return json.loads(text)

    def metric(self, name):
        text = self.ask(None, "/metrics", method="GET")[2].decode()
        found = re.search("^" + re.escape(name) + r" (\S+)$", text, re.M)
        return float(found[1]) if found else 0.0

    def await_metric(self, name, value):
        await_true(lambda: self.metric(name) >= value, "%s at %g" % (name, value))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


def await_true(work, what):
    """What work() returns, once that is true."""
    for _ in range(PATIENCE * 50):
        result = work()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError("never came: " + what)


def in_background(work, *args):
    thread = threading.Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread


def near(a, b, slack=1e-9):
    return abs(a - b) <= slack


def fails_with(kind, work):
    """The exception of that kind, and no other, that `work` raises."""
    try:
        result = work()
    except kind as e:
        assert type(e) is kind, "wanted %s, got %r" % (kind.__name__, e)
        return e
    raise AssertionError("wanted %s, got %r" % (kind.__name__, result))


def functions(module):
    """The module's own public functions, in the order of the file."""
    return [(name, f) for name, f in vars(module).items()
            if callable(f) and getattr(f, "__module__", None) == module.__name__
            and not name.startswith("_") and not isinstance(f, type)]


def run(tests=None):
    """Runs (name, function) pairs, by default the functions of the main module, and exits."""
    passed, failed = 0, []
    for name, test in tests if tests is not None else functions(sys.modules["__main__"]):
        print("[ RUN      ] " + name, flush=True)
        try:
            test()
        except Exception:
            traceback.print_exc(file=sys.stdout)
            print("[  FAILED  ] " + name)
            failed.append(name)
        else:
            print("[       OK ] " + name)
            passed += 1
    print("[  PASSED  ] %d test(s)." % passed)
    if failed:
        print("[  FAILED  ] %d test(s), listed below:" % len(failed))
        for name in failed:
            print("[  FAILED  ] " + name)
    sys.stdout.flush()
    sys.exit(1 if failed else 0)
