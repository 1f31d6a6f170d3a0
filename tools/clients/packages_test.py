"""Three packages that users of Clef have, unmodified: clef-rag on the bare route, clef-evals on the
Workers AI envelope, jev-pandas on a base that ends in /v1. Their answers have to be those of a plain
request; their own checks of what comes back are part of the test."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import tempfile

import clef_evals
import clef_rag.clef as rag
import clef_rag.enrich.screen as rag_screen
import clef_rag.types as rag_types
import jevpandas
import pandas

import rig

server = rig.Server("--alias", "clef")
locked_server = rig.Server("--api-key", "the-key", "--alias", "clef")

STATE = "I was charged twice for my March invoice."
CHOICE = {"billing": "Payments, invoices", "technical": "Bugs and outages", "other": "Anything else"}
LEVELS = ["this week", "tomorrow", "today"]
RAW = {"state": STATE, "questions": {
    "refund": {"type": "noul", "instructions": "Money back?"},
    "queue": {"type": "choice", "instructions": "Which team?", "criteria": CHOICE},
    "urgency": {"type": "score", "instructions": "How soon?", "criteria": LEVELS}}}
EXPECTED = server.answer(RAW)

# ---- clef-rag -----------------------------------------------------------------------------------

RAG_QUESTIONS = {"refund": rag.Noul("Money back?"), "queue": rag.Choice("Which team?", CHOICE),
                 "urgency": rag.Score("How soon?", LEVELS)}


def _rag(work, url=None, key=None, **options):
    async def go():
        config = rag.ClefConfig(backend="self-hosted", base_url=url or server.url, cache_dir=None,
                                api_key_env="RAG_KEY", **options)
        async with rag.ClefClient(config) as client:
            return await work(client), client.usage
    os.environ["RAG_KEY"] = key or ""
    return asyncio.run(go())


def clef_rag_asks_all_three_types():
    response, usage = _rag(lambda client: client.ask(STATE, RAG_QUESTIONS))
    answers = EXPECTED["answers"]
    assert response.model == "clef-flash" and response.output_tokens == 0
    assert response.input_tokens == EXPECTED["usage"]["input_tokens"]
    assert response.answers["refund"].noul == answers["refund"]["noul"]
    for name, value in (("queue", answers["queue"]["choice"]), ("urgency", answers["urgency"]["score"])):
        got = response.answers[name]
        assert got.value == value and got.confidence == answers[name]["confidence"]
        assert got.probabilities == answers[name]["probabilities"]
    assert usage.errors == usage.retries == 0


def clef_rag_asks_many_at_once():
    jobs = [("%d: %s" % (i, STATE), RAG_QUESTIONS) for i in range(40)]
    responses, usage = _rag(lambda client: client.ask_many(jobs), max_rps=1000)
    assert all(isinstance(r, rag.ClefResponse) for r in responses), responses
    assert usage.requests == 40 and usage.errors == 0


def clef_rag_screens_a_document():
    text = "# Policy\n\nRefunds take 14 days.\n\nAccept all cookies.\n\n- one\n- two\n"
    document = rag_types.Document(text=text, format="markdown")
    result, _ = _rag(lambda client: rag_screen.screen_document(client, document))
    assert result.screened >= 3 and result.requests == 1 and result.failed_batches == 0


def clef_rag_reads_refusals():
    for url, key, question, status in ((locked_server.url, "wrong", "clef-flash", 401),
                                       (server.url, None, "gpt-x", 400)):
        try:
            _rag(lambda client: client.ask(STATE, RAG_QUESTIONS), url, key, model=question)
        except rag.ClefError as e:
            assert e.status == status, e
        else:
            raise AssertionError("not refused")
    _rag(lambda client: client.ask(STATE, RAG_QUESTIONS), locked_server.url, "the-key")

# ---- clef-evals ---------------------------------------------------------------------------------

MODELS = ("@cf/cloudflare/clef-flash", "@cf/cloudflare/clef")


def _evals(model=MODELS[0], to=server, token="any"):
    return clef_evals.ClefConfig(account_id="0123456789abcdef", api_token=token, model=model, max_retries=0,
                                 base_url=to.url + "/client/v4", timeout=rig.PATIENCE)


def clef_evals_reads_the_envelope():
    for model in MODELS:
        with clef_evals.ClefClient(_evals(model)) as client:
            response = client.run(STATE, {
                "refund": clef_evals.Noul("Money back?"), "queue": clef_evals.Choice("Which team?", CHOICE),
                "urgency": clef_evals.Score("How soon?", LEVELS)})
        answers = EXPECTED["answers"]
        assert response.usage.input_tokens == EXPECTED["usage"]["input_tokens"]
        assert response.answers["refund"].probability == answers["refund"]["noul"]
        assert response.answers["queue"].choice == answers["queue"]["choice"]
        assert response.answers["queue"].probabilities == answers["queue"]["probabilities"]
        assert response.answers["urgency"].score == answers["urgency"]["score"]
        assert response.answers["urgency"].legend == dict(enumerate(LEVELS))


def clef_evals_sends_pictures():
    pictures = rig.Server("--alias", "clef", model="toy-vision")
    with open(rig.testdata("media", "rgb8.png"), "rb") as f:
        data = base64.b64encode(f.read()).decode()
    with clef_evals.ClefClient(_evals(to=pictures)) as client:
        ask = {"cat": clef_evals.Noul("Is there a cat?")}
        without = client.run("", ask)
        response = client.run("", ask, [{"content_type": "image/png", "base64": data}])
    assert response.usage.input_tokens > without.usage.input_tokens
    assert response.answers["cat"] != without.answers["cat"]


def clef_evals_tells_its_errors_apart():
    for config, kind, words in (
            (_evals(to=locked_server), clef_evals.ClefAuthError, "key"),
            (_evals(to=rig.Server("--max-options", 2)), clef_evals.ClefAPIError, "questions.queue")):
        with clef_evals.ClefClient(config) as client:
            e = rig.fails_with(kind, lambda: client.run(STATE, {"queue": clef_evals.Choice("?", CHOICE)}))
        assert words in str(e), e
        assert isinstance(e.error_code, int), e
    with clef_evals.ClefClient(_evals(to=locked_server, token="the-key")) as client:
        client.run(STATE, {"refund": clef_evals.Noul("Money back?")})


def the_clef_eval_command_evaluates_a_set():
    items = [{"state": STATE, "instructions": "Which team?", "criteria": CHOICE, "gold": "billing"},
             {"state": STATE, "instructions": "Money back?", "gold": True}] * 5
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(items, f)
        f.flush()
        for extra in ([], ["--async", "--concurrency", "4"]):
            done = subprocess.run(
                [os.path.join(os.path.dirname(sys.executable), "clef-eval"), "run", f.name, "--json"] + extra,
                capture_output=True, text=True,
                env=dict(os.environ, CLEF_ACCOUNT_ID="a", CLEF_API_TOKEN="t", CLEF_MODEL=MODELS[0],
                         CLEF_BASE_URL=server.url + "/client/v4"))
            assert done.returncode == 0, done.stderr
            result = json.loads(done.stdout)
            assert result["n_samples"] == 10 and result["failures"] == 0, result

# ---- jev-pandas ---------------------------------------------------------------------------------


def jev_pandas_judges_a_frame():
    rows = [STATE, "The app crashes.", "Thanks!"]
    frame = pandas.DataFrame({"message": rows, "other": [1, 2, 3]})
    with jevpandas.JevClient(server.url + "/v1", timeout=rig.PATIENCE) as client:
        result = jevpandas.JevFrame(frame, client).ask(
            {"refund": jevpandas.noul("Money back?"), "queue": jevpandas.choice("Which team?", CHOICE),
             "urgency": jevpandas.score("How soon?", LEVELS)}, columns=["message"], workers=3)
    assert result.metadata["errors"] == 0
    for i, row in enumerate(rows):
        answers = server.answer(dict(RAW, state={"message": row}))["answers"]
        assert result["refund_probability"][i] == answers["refund"]["noul"]
        assert result["queue_label"][i] == answers["queue"]["choice"]
        assert result["urgency_value"][i] == answers["urgency"]["score"]


def jev_pandas_classifies_into_255_with_seven_digits():
    """It wants sums within 0.001 of 1, which four digits of 255 options need not keep."""
    digits = rig.Server("--digits", 7)
    with jevpandas.JevClient(digits.url, timeout=rig.PATIENCE) as client:
        result = jevpandas.JevFrame(pandas.DataFrame({"m": [STATE]}), client).classify(
            "Which?", ["option %d" % i for i in range(255)], columns=["m"])
    assert result.metadata["errors"] == 0, result["category_error"][0]


def jev_pandas_reads_refusals():
    frame = pandas.DataFrame({"m": [STATE]})
    with jevpandas.JevClient(locked_server.url, "wrong") as client:
        result = jevpandas.JevFrame(frame, client).evaluate("Money back?", columns=["m"])
    assert "HTTP 401" in result["match_error"][0]
    with jevpandas.JevClient(locked_server.url, "the-key") as client:
        jevpandas.JevFrame(frame, client).filter("Money back?", columns=["m"])


if __name__ == "__main__":
    rig.run()
