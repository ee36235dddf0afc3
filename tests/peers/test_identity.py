"""Identities, signatures and credentials as the SDK's own client code makes and reads them."""

import base64
import json
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
from agentfield.client import AgentFieldClient
from agentfield.did_auth import create_did_auth_headers
from agentfield.did_manager import DIDManager
from agentfield.vc_generator import VCGenerator

FUNCTIONS = [{"id": "remember", "input_schema": {}, "output_schema": {}, "tags": []}]


@pytest.fixture(scope="module")
def shared(module_world):
    plane = module_world.plane()
    agent = module_world.agent(plane, "surface.py", "did-agent")
    manager = DIDManager(plane.url, "did-agent")
    assert manager.register_agent(FUNCTIONS, [])
    return SimpleNamespace(plane=plane, agent=agent, manager=manager, output=module_world.output)


def test_the_sdk_reads_its_identities_and_gets_the_same_again(shared):
    again = DIDManager(shared.plane.url, "did-agent")
    assert again.register_agent(FUNCTIONS, [])
    assert again.identity_package == shared.manager.identity_package
    did = shared.manager.get_function_did("remember")
    assert did != shared.manager.get_agent_did()
    resolved = shared.manager.resolve_did(did)
    assert resolved["agent_node_id"] == "did-agent"
    key = base64.urlsafe_b64decode(did.removeprefix("did:key:z") + "==")
    public = json.loads(shared.manager.identity_package.reasoner_dids["remember"].public_key_jwk)
    assert key[:2] == b"\xed\x01"
    assert key[2:] == base64.urlsafe_b64decode(public["x"] + "==")


def test_a_submission_signed_by_the_sdk_is_taken_and_its_replay_is_not(shared):
    identity = shared.manager.identity_package.agent_did
    body = b'{"input":{}}'
    headers = create_did_auth_headers(body, identity.private_key_jwk, identity.did)
    headers["Content-Type"] = "application/json"
    path = "/api/v1/execute/async/did-agent.heard_so_far"
    assert shared.plane.http.post(path, content=body, headers=headers).status_code == 202
    again = shared.plane.http.post(path, content=body, headers=headers)
    assert again.status_code == 401, again.text
    assert again.json()["error_category"] == "unauthenticated"
    other = create_did_auth_headers(body, identity.private_key_jwk, identity.did)
    changed = shared.plane.http.post(path, content=body + b" ", headers=other)
    assert changed.status_code == 401, changed.text


def test_a_credential_made_by_the_sdk_verifies_until_it_is_changed(shared):
    generator = VCGenerator(shared.plane.url)
    generator.set_enabled(True)
    context = shared.manager.create_execution_context(
        "exec_local_1", "run_local_1", "session-1", "remember", "remember"
    )
    assert context.timestamp <= datetime.now(timezone.utc)
    credential = generator.generate_execution_vc(
        context, {"key": "k"}, {"done": 2**60}, "success", duration_ms=2**60
    )
    assert credential.execution_id == "exec_local_1"
    assert credential.status == "succeeded"
    assert credential.vc_document["proof"]["cryptosuite"] == "eddsa-jcs-2022"
    assert credential.vc_document["credentialSubject"]["durationMs"] == str(2**60)
    assert generator.verify_vc(credential.vc_document)["valid"] is True
    credential.vc_document["credentialSubject"]["status"] = "failed"
    assert generator.verify_vc(credential.vc_document)["valid"] is False
    assert generator.get_workflow_vc_chain("run_local_1") is None


def test_discovery_is_read_in_all_formats(shared):
    client = AgentFieldClient(base_url=shared.plane.url)
    found = client.discover_capabilities(agent="did-agent", include_input_schema=True).json
    assert found.total_agents == 1
    (one,) = found.capabilities
    assert one.health_status == "active" and one.deployment_type == "long_running"
    remember = next(r for r in one.reasoners if r.id == "remember")
    assert remember.invocation_target == "did-agent:remember"
    assert "key" in remember.input_schema["properties"]
    compact = client.discover_capabilities(format="compact", reasoner="rem*").compact
    assert [r.target for r in compact.reasoners] == ["did-agent:remember"]
    xml = client.discover_capabilities(format="xml", agent_ids=["did-agent", "other"]).xml
    assert 'target="did-agent:remember"' in xml
