"""The official Python SDK, unmodified: every question type, models, request ids, each of its error
classes from a real refusal, and a 429 and a 503 that it retries by itself."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import textwrap

import httpx2
import typesafe_sdk as sdk

import rig

KEY = "the-right-key"
open_server = rig.Server()
locked_server = rig.Server("--api-key", KEY, "--max-body", 20000, "--max-length", 1000)

STATE = {"subject": "Card charged twice", "body": "Second time this month. Fix it today."}
QUESTIONS = {
    "angry": sdk.Noul(instructions="Is the writer angry?", criteria={"true": "Angry", "false": None}),
    "queue": sdk.Choice(instructions={"task": "Pick the queue"},
                        criteria={"billing": "Charges and refunds", "tech": None, "other": ["any"]}),
    "urgency": sdk.Score(instructions="How soon?", criteria=["This week", {"by": "Tomorrow"}, "Today"]),
}
RAW = {"state": STATE, "questions": {
    "angry": {"type": "noul", "instructions": "Is the writer angry?",
              "criteria": {"true": "Angry", "false": None}},
    "queue": {"type": "choice", "instructions": {"task": "Pick the queue"},
              "criteria": {"billing": "Charges and refunds", "tech": None, "other": ["any"]}},
    "urgency": {"type": "score", "instructions": "How soon?",
                "criteria": ["This week", {"by": "Tomorrow"}, "Today"]}}}
ONE = {"a": sdk.Noul(instructions="Is it so?")}


def _client(server, key=KEY, **options):
    return sdk.TypeSafeClient(api_key=key, base_url=server.url, timeout=rig.PATIENCE, **options)


def every_question_type_is_answered():
    expected = open_server.answer(RAW)
    with _client(open_server) as client:
        result = client.system_one(state=STATE, questions=QUESTIONS)
    assert result.model == "clef-flash" and list(result.answers) == list(QUESTIONS)
    assert result.usage.input_tokens == expected["usage"]["input_tokens"] > 0
    assert result.usage.output_tokens == 0
    answers = expected["answers"]
    assert result.nouls["angry"].noul == answers["angry"]["noul"]
    queue, urgency = result.choices["queue"], result.scores["urgency"]
    assert queue.choice == answers["queue"]["choice"]
    assert queue.confidence == answers["queue"]["confidence"]
    assert dict(queue.probabilities) == answers["queue"]["probabilities"]
    assert urgency.score == answers["urgency"]["score"]
    assert urgency.legend == {0: "This week", 1: {"by": "Tomorrow"}, 2: "Today"}
    assert {str(k): p for k, p in urgency.probabilities.items()} == answers["urgency"]["probabilities"]


def the_asynchronous_client_gets_the_same():
    async def ask():
        async with sdk.AsyncTypeSafeClient(api_key=KEY, base_url=open_server.url,
                                           timeout=rig.PATIENCE) as client:
            results = [client.system_one(state=STATE, questions=QUESTIONS) for _ in range(8)]
            return await asyncio.gather(*results)
    expected = open_server.answer(RAW)["answers"]["angry"]["noul"]
    assert [r.nouls["angry"].noul for r in asyncio.run(ask())] == [expected] * 8


def states_of_all_kinds_and_other_fields_are_taken():
    with _client(open_server) as client:
        for state in ("", "text", {}, [], [{"type": "text", "text": "Hello"}]):
            client.system_one(state=state, questions=ONE, extra_body={"x_trace": 1, "seed": None})


def compressed_bodies_are_read():
    # The SDK compresses from 1,024 bytes on, because backports.zstd is installed.
    sent = []
    http_client = httpx2.Client(event_hooks={"request": [lambda r: sent.append(r.headers.get("content-encoding"))]},
                                timeout=rig.PATIENCE)
    state = {"text": "word " * 1000}
    with _client(open_server, http_client=http_client) as client:
        result = client.system_one(state=state, questions=ONE)
    assert sent == ["zstd"], sent
    plain = open_server.answer({"state": state, "questions": {"a": {"type": "noul", "instructions": "Is it so?"}}})
    assert result.nouls["a"].noul == plain["answers"]["a"]["noul"]


def models_are_listed():
    with _client(open_server) as client:
        models = client.models.list().models
    assert [m.name for m in models][:2] == ["clef-flash", "jev-latest"]
    assert all(len(m.release_date) == 10 and m.description for m in models)


def a_response_has_its_request_id():
    with _client(open_server) as client:
        made = client.system_one(state="", questions=ONE).request_id
        given = client.system_one(state="", questions=ONE,
                                  extra_headers={"x-typesafe-request-id": "mine-1"}).request_id
        listed = client.models.list().request_id
    assert made.startswith("req_") and len(made) == 36 and listed.startswith("req_")
    assert given == "mine-1"


def an_unknown_model_is_a_bad_request_error():
    with _client(open_server) as client:
        e = rig.fails_with(sdk.TypeSafeBadRequestError,
                           lambda: client.system_one(state="", questions=ONE, model="gpt-x"))
    assert e.status == 400 and "Unknown model: gpt-x" in str(e) and e.request_id.startswith("req_")


def a_wrong_key_is_an_authentication_error():
    with _client(locked_server, key="wrong") as client:
        e = rig.fails_with(sdk.TypeSafeAuthenticationError,
                           lambda: client.system_one(state="", questions=ONE))
        rig.fails_with(sdk.TypeSafeAuthenticationError, client.models.list)
    assert e.body["detail"]["error_type"] == "authentication_error"
    with _client(locked_server) as client:
        client.system_one(state="", questions=ONE)


def a_foreign_origin_is_a_permission_error():
    with _client(open_server) as client:
        rig.fails_with(sdk.TypeSafePermissionDeniedError, lambda: client.system_one(
            state="", questions=ONE, extra_headers={"Origin": "https://elsewhere.example"}))


def a_wrong_base_is_a_not_found_error():
    with sdk.TypeSafeClient(api_key=KEY, base_url=open_server.url + "/nowhere") as client:
        rig.fails_with(sdk.TypeSafeNotFoundError, lambda: client.system_one(state="", questions=ONE))


def a_base_that_ends_in_v1_works():
    for base in ("/v1", "/", "/v1/", "/api"):
        with sdk.TypeSafeClient(api_key=KEY, base_url=open_server.url + base, timeout=rig.PATIENCE) as client:
            client.system_one(state="", questions=ONE)


def a_wrong_field_is_an_unprocessable_entity_error_that_names_it():
    with _client(open_server) as client:
        e = rig.fails_with(sdk.TypeSafeUnprocessableEntityError, lambda: client.system_one(
            state="", questions={"n": sdk.Score(criteria=[str(i) for i in range(11)])}))
    assert "questions.n.score.criteria" in str(e), e


def a_body_or_a_state_too_large_is_an_api_error_413():
    with _client(locked_server) as client:
        for state, kind in (("x" * 30000, "request_too_large"), ("7 " * 2000, "max_tokens_exceeded")):
            e = rig.fails_with(sdk.TypeSafeAPIError,
                               lambda: client.system_one(state=state, questions=ONE))
            assert e.status == 413 and e.body["detail"]["error_type"] == kind, e


def a_type_that_clef_does_not_have_is_refused_in_words():
    with _client(open_server) as client:
        e = rig.fails_with(sdk.TypeSafeUnprocessableEntityError, lambda: client.system_one(
            state="", questions={"b": sdk.Box(instructions="The dog")}))
    assert "questions.b" in str(e)


def a_server_that_is_not_there_is_a_connection_error():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        url = "http://127.0.0.1:%d" % s.getsockname()[1]
        with sdk.TypeSafeClient(api_key=KEY, base_url=url, retry=sdk.RetryPolicy(max_retries=0)) as c:
            rig.fails_with(sdk.TypeSafeAPIConnectionError, c.models.list)


def _counting_client(server, retries):
    """A client and the statuses and waits that it was told."""
    seen = []

    def note(response):
        seen.append((response.status_code, response.headers.get("retry-after")))
    http_client = httpx2.Client(event_hooks={"response": [note]}, timeout=rig.PATIENCE)
    return _client(server, http_client=http_client,
                   retry=sdk.RetryPolicy(max_retries=retries, timeout=rig.PATIENCE)), seen


def _answered_once_there_is_room(server, status, make_room):
    """A patient client is refused with that status, then answered after make_room()."""
    client, seen = _counting_client(server, retries=50)
    outcome = []
    with client:
        asking = rig.in_background(
            lambda: outcome.append(client.system_one(state="Me too", questions=ONE)))
        rig.await_true(lambda: seen, "an answer to the patient client")
        make_room()
        asking.join(rig.PATIENCE)
    assert outcome and 0 <= outcome[0].nouls["a"].noul <= 1
    assert seen[0] == (status, "1") and seen[-1] == (200, None), seen


def a_full_queue_is_a_rate_limit_error_or_retried_until_there_is_room():
    server = rig.Server(*rig.ONE_WAITS)
    holders = server.fill_queue()
    impatient, _ = _counting_client(server, retries=0)
    with impatient:
        e = rig.fails_with(sdk.TypeSafeRateLimitError,
                           lambda: impatient.system_one(state="Me too", questions=ONE))
    assert e.body["detail"]["error_type"] == "rate_limit_error"
    _answered_once_there_is_room(server, 429, lambda: [h.close() for h in holders])


def too_many_connections_are_503_and_retried_until_there_is_room():
    server = rig.Server("--max-connections", 1)
    holder = socket.create_connection(("127.0.0.1", server.port))
    holder.sendall(b"G")
    _answered_once_there_is_room(server, 503, holder.close)


def a_deadline_is_an_internal_server_error_503():
    server = rig.Server("--deadline", 1, "--chunk", 1)
    client, seen = _counting_client(server, retries=0)
    with client:
        e = rig.fails_with(sdk.TypeSafeInternalServerError,
                           lambda: client.system_one(state="7" * 15000, questions=ONE))
    assert e.status == 503 and "No answer within 1 seconds" in str(e)


def the_example_of_the_readme_works():
    with open(os.path.join(rig.ROOT, "README.md")) as f:
        example = re.search(r"^    from typesafe_sdk .*\n(?:(?:    .*)?\n)*", f.read(), re.M)[0]
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(example)], capture_output=True, text=True,
                          env=dict(os.environ, TYPESAFE_BASE_URL=open_server.url, TYPESAFE_API_KEY="any"))
    assert re.fullmatch(r"[01]\.\d+ (billing|other) [0-2]\.\d+\n", done.stdout), done


if __name__ == "__main__":
    rig.run()
