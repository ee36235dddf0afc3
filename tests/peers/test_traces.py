"""Traces from the caller over the plane to the SDK's agent, read with OpenTelemetry's own
messages of the protocol."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from harness.waiting import until

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE}-{CALLER}-01", "tracestate": "rojo=00f067aa0ba902b7"}


class Collector:
    """An OTLP receiver over HTTP."""

    def __init__(self):
        self.spans = []
        self.resources = []
        collector = self

        class Take(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                request = ExportTraceServiceRequest.FromString(body)
                assert request.SerializeToString() and self.path == "/v1/traces"
                for resource in request.resource_spans:
                    collector.resources.append(resource.resource)
                    for scope in resource.scope_spans:
                        collector.spans.extend(scope.spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Take)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def named(self, name, execution):
        """The span of this name that belongs to an execution, when it has come."""
        spans = list(self.spans)
        of = (s for s in spans if ids(s).get("muster.execution.id") == execution and s.kind == 2)
        own = next(of, None)
        if own is None or name == "execution":
            return own
        return next((s for s in spans if s.parent_span_id == own.span_id and s.name == name), None)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def ids(span):
    return {a.key: a.value.string_value for a in span.attributes}


@pytest.fixture(scope="module")
def shared(module_world):
    collector = Collector()
    module_world.others.append(collector)
    plane = module_world.plane(telemetry__endpoint=collector.url)
    agents = [module_world.agent(plane, "traced.py", name) for name in ("first", "second")]
    return SimpleNamespace(plane=plane, collector=collector, agents=agents)


def call(shared, target, value, headers):
    answer = shared.plane.call(target, value, **headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_header_arrives_at_the_agent_with_the_span_of_its_attempt(shared):
    body = call(shared, "first.heard", {}, HEADERS)
    attempt = until(
        "the span of the attempt", lambda: shared.collector.named("attempt 1", body["execution_id"])
    )
    heard = body["result"]
    assert heard["traceparent"] == f"00-{TRACE}-{attempt.span_id.hex()}-01"
    assert heard["tracestate"] == HEADERS["tracestate"]
    own = shared.collector.named("execution", body["execution_id"])
    assert own.parent_span_id.hex() == CALLER
    assert own.trace_id.hex() == TRACE
    assert own.name == "first.heard"
    assert ids(own)["muster.status"] == "succeeded"
    resource = {a.key: a.value.string_value for a in shared.collector.resources[0].attributes}
    assert resource["service.name"] == "muster"


def test_a_nested_call_is_in_the_same_trace_under_its_parent(shared):
    body = call(shared, "first.onward", {"agent": "second"}, HEADERS)
    there = body["result"]["there"]
    assert there["traceparent"].split("-")[1] == TRACE
    child = there["x-execution-id"].split("~")[0]
    of_child = until("the nested span", lambda: shared.collector.named("execution", child))
    of_parent = until(
        "the span of the parent", lambda: shared.collector.named("execution", body["execution_id"])
    )
    attempt = until(
        "its attempt", lambda: shared.collector.named("attempt 1", body["execution_id"])
    )
    assert of_child.trace_id == of_parent.trace_id
    # Under the attempt where the SDK passes the header on, else under the execution.
    assert of_child.parent_span_id in (attempt.span_id, of_parent.span_id)
