"""curl as Debian has it: bodies that wait for 100 Continue, bodies in chunks, a connection for several
requests, and refusals that come before the body was sent. It no longer pipelines; tests/server_test.c
does."""

import gzip
import json
import os
import re
import shlex
import subprocess
import tempfile

import rig

server = rig.Server()
REQUEST = {"state": "The box was open.", "questions": {"open": {"type": "noul"}}}
EXPECTED = server.answer(REQUEST)


def _curl(*words, body=b""):
    """The answers of curl, and what it said of the traffic."""
    done = subprocess.run(["curl", "-sS", "-v", "--noproxy", "*", "--max-time", str(rig.PATIENCE), *words],
                          input=body, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode(), done.stderr.decode()


def _padded(n):
    return json.dumps(dict(REQUEST, x_padding="p" * n)).encode()


def a_large_body_waits_for_100_continue():
    answer, traffic = _curl(server.url + "/v1/systemone", "--data-binary", "@-", body=_padded(3 << 20))
    assert re.search("> Expect: 100-continue.*< HTTP/1.1 100 .*< HTTP/1.1 200 ", traffic, re.S), traffic
    assert json.loads(answer) == EXPECTED


def a_body_too_large_is_refused_before_it_is_sent():
    with tempfile.NamedTemporaryFile() as f:
        f.write(_padded(33 << 20))
        f.flush()
        answer, traffic = _curl(server.url + "/v1/systemone", "-T", f.name, "-X", "POST", "--expect100-timeout",
                                "30", "-w", "\n%{http_code} %{size_upload}")
    body, counts = answer.rsplit("\n", 1)
    assert counts == "413 0", counts
    assert json.loads(body)["detail"]["error_type"] == "request_too_large" and "HTTP/1.1 100" not in traffic


def a_body_in_chunks_is_read():
    for size in (0, 100000):
        answer, traffic = _curl(server.url + "/v1/systemone", "-H", "Transfer-Encoding: chunked",
                                "-X", "POST", "-T", "-", body=_padded(size))
        assert "> Transfer-Encoding: chunked" in traffic and json.loads(answer) == EXPECTED


def a_connection_serves_several_requests_after_errors_too():
    one = [server.url + "/v1/systemone", "-d", json.dumps(REQUEST), "-w", "\n%{http_code} %{num_connects}\n"]
    wrong = [server.url + "/v1/systemone", "-d", "{", "-w", "\n%{http_code} %{num_connects}\n"]
    answer, _ = _curl(*one, "--next", *wrong, "--next", *one)
    assert re.findall(r"^(\d{3} \d)$", answer, re.M) == ["200 1", "422 0", "200 0"], answer


def other_methods_and_versions_are_answered():
    head, _ = _curl("-I", server.url + "/health")
    assert head.startswith("HTTP/1.1 200") and "content-length:" in head.lower()
    answer, _ = _curl("--http1.0", server.url + "/v1/systemone", "-d", json.dumps(REQUEST))
    assert json.loads(answer) == EXPECTED
    answer, _ = _curl("--compressed", server.url + "/v1/systemone", "--json", json.dumps(REQUEST))
    assert json.loads(answer) == EXPECTED


def an_encoded_body_is_415():
    answer, _ = _curl(server.url + "/v1/systemone", "-H", "Content-Encoding: gzip", "--data-binary", "@-",
                      "-w", "\n%{http_code}", body=gzip.compress(_padded(0)))
    assert answer.endswith("\n415") and "unsupported_media_type" in answer


def the_curl_line_of_the_readme_works():
    with open(os.path.join(rig.ROOT, "README.md")) as f:
        lines = re.findall(r"^ +(curl .*/v1/systemone .*)$", f.read(), re.M)
    assert lines, "README.md has no curl line"
    for line in lines:
        words = shlex.split(re.sub(r"(localhost|127\.0\.0\.1):\d+", server.url[7:], line))
        done = subprocess.run(words, capture_output=True, cwd=rig.ROOT)
        assert "answers" in json.loads(done.stdout), done


if __name__ == "__main__":
    rig.run()
