"""Schemathesis, unmodified, against what /openapi.json promises: for each route valid and broken
requests; no status 5xx, no status, header, content type or body that the document does not describe, no
success without a key or with a body that the document forbids. (A body that it allows may still be refused: a
schema cannot say that two members contradict each other or that a picture can be decoded.) The toy answers
at once, so most of the time is spent making requests up."""

import os
import re
import subprocess
import sys
import tempfile

import rig

CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance",
          "response_headers_conformance", "response_schema_conformance", "negative_data_rejection",
          "unsupported_method", "ignored_auth", "allow_header_conformance"]
server = rig.Server("--api-key", "the-key", "--any-model")


def _document():
    status, headers, text = server.ask(None, "/openapi.json", {"Authorization": "Bearer the-key"}, "GET")
    assert status == 200 and headers["Content-Type"] == "application/json"
    return rig.json.loads(text)


def every_route_of_the_document_is_there():
    for path, methods in _document()["paths"].items():
        for method in methods:
            if method in ("get", "post"):
                path = path.replace("{account}", "0").replace("{model}", "clef-flash")
                status = server.ask(None if method == "get" else b"{}", path, {"Authorization": "Bearer the-key"},
                                    method.upper())[0]
                assert status == (200 if method == "get" else 422), (path, status)


# What HTTP and its caches have of their own; the routes give the others.
OF_HTTP = {"connection", "content-length", "content-type", "date", "cache-control", "vary"}
ONE_OF_EACH = {"/v1/systemone", "/v1/systemone/batch", "/accounts/{account}/ai/run/@cf/cloudflare/clef"}


def _body(state="", **members):
    return dict(members, state=state, questions={"q": {"type": "noul"}})


def _requests(paths):
    """Server, paths, headers and body of requests that get every kind of answer."""
    key = {"Authorization": "Bearer the-key"}
    strict = rig.Server("--api-key", "the-key", "--max-body", 2000)
    yield strict, paths, {}, _body()
    for headers in ({}, {"Host": "elsewhere.example"}, {"Expect": "tea"}, {"Content-Encoding": "br"},
                    {"Content-Length": "3000"}, {"Content-Length": "x"}, {"X-Long": "x" * 9000}):
        yield strict, paths, dict(key, **headers), _body()
    yield strict, paths, key, {}
    yield strict, paths, key, _body(model="gpt-x")
    yield rig.Server("--deadline", 1, "--chunk", 1), ONE_OF_EACH, {}, _body("7" * 15000)
    full = rig.Server(*rig.ONE_WAITS)
    holders = full.fill_queue()
    yield full, paths, {}, _body()
    for holder in holders:
        holder.close()


def _described(document, path, method, status):
    response = document["paths"][path][method]["responses"][str(status)]
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    return {name.lower() for name in response["headers"]}


def the_headers_of_every_answer_are_those_described():
    document, seen = _document(), set()
    routes = {path: "post" if "post" in methods else "get" for path, methods in document["paths"].items()}
    for to, paths, headers, body in _requests(routes.keys()):
        for path in paths:
            for method in ("post", "get"):
                sent = [body] if path.endswith("batch") else body
                at = path.replace("{account}", "0").replace("{model}", "clef-flash")
                status, got, _ = to.ask(sent if method == "post" else None, at, headers, method.upper())
                wanted = _described(document, path, routes[path], status)
                names = {name.lower() for name in got.keys()} - OF_HTTP
                assert names == wanted, (path, method, status, names ^ wanted)
                seen.add(status)
    assert seen == {200, 400, 401, 403, 405, 413, 415, 417, 422, 429, 431, 503}, seen


def schemathesis_finds_nothing():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [os.path.join(os.path.dirname(sys.executable), "schemathesis"), "run", server.url + "/openapi.json",
             "--checks", ",".join(CHECKS), "-H", "Authorization: Bearer the-key", "--seed", "1",
             "--phases", "examples,coverage,fuzzing", "-n", "6", "--no-color",
             "--generation-database", "none", "--suppress-health-check", "all", "--request-timeout", str(rig.PATIENCE)],
            capture_output=True, text=True, cwd=folder)
    print(done.stdout + done.stderr)
    assert done.returncode == 0
    made = re.search(r"(\d+) generated", done.stdout)
    assert made and int(made[1]) > 500, "too few requests were made"


def no_request_was_a_5xx():
    text = server.ask(None, "/metrics", {"Authorization": "Bearer the-key"}, "GET")[2].decode()
    assert "status=\"200\"" in text and not re.search(r'status="5', text), text


if __name__ == "__main__":
    rig.run()
