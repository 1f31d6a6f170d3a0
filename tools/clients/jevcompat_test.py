"""The conformance suite of the protocol, unmodified, as its own command: against an open server, one
with a key, and one with the protocol's own formula for confidence. Every requirement is a test here.

WONT holds what this server fails, with the reason; docs/clients.md has the measured values. One that
passes after all is a failure too, so that the list stays true."""

import json
import os
import subprocess
import sys
import tempfile

import rig

# The model reads all questions in one prompt, in their order and with their ids: other questions, another
# order and other ids are another input. The first of these is a MUST of the suite.
JOINT = {"semantics.question-id", "semantics.batching", "semantics.question-order"}
# The default is what the model's reference calls confidence: the largest probability.
TOP = {"confidence.formula"}

SUITES = {  # the server's options, the suite's, what fails, and what only another of the three can try
    "open": ([], [], JOINT | TOP, {"auth.bearer", "auth.missing", "auth.invalid"}),
    "key": (["--api-key", "the-key"], ["--key", "the-key"], JOINT | TOP, {"auth.ignored-when-off"}),
    "typesafe": (["--confidence", "typesafe"], [], JOINT, {"auth.bearer", "auth.missing", "auth.invalid"}),
}


def tests_of(name):
    server_options, suite_options, wont, elsewhere = SUITES[name]
    server = rig.Server(*server_options)
    suite = os.path.join(os.path.dirname(sys.executable), "jevcompat")
    with tempfile.NamedTemporaryFile() as report:
        subprocess.run([suite, "test", server.url, "--json", report.name] + suite_options,
                       capture_output=True)
        data = json.load(report)
    server.stop()
    for r in data["results"]:
        for finding in r["findings"]:
            print("%s: %s %s: %s" % (name, r["level"], r["id"], finding["message"]))

    def every_case_ran_to_its_end():
        assert not data["aborted"] and not data["case_errors"] and not data["inconclusive"], data["summary"]
        assert not data["summary"]["untested_musts"], data["summary"]
    yield name + ": every case ran to its end", every_case_ran_to_its_end
    for r in data["results"]:
        wanted = "skip" if r["id"] in elsewhere else "fail" if r["id"] in wont else "pass"

        def requirement(r=r, wanted=wanted):
            assert r["status"] == wanted, (r["status"], wanted, r["reason"], r["findings"][:1])
        unless = {"pass": "", "fail": " (does not hold, as documented)", "skip": " (not of this server)"}
        yield "%s: %s %s%s" % (name, r["level"], r["id"], unless[wanted]), requirement


if __name__ == "__main__":
    rig.run([test for name in SUITES for test in tests_of(name)])
