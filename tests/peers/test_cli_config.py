"""Where each value of a running plane came from, as `muster config` says it: file and line,
variable, an older name, flag, default; and that no secret is shown anywhere."""

import subprocess

import pytest

from harness.child import Child
from harness.plane import binary, quiet_environment
from harness.waiting import free_port, until

SECRETS = {
    "file": "file-secret-5f1c2d",
    "env": "env-secret-9b8a7c",
    "alias": "alias-secret-1e2f3a",
}


@pytest.fixture
def configured(world):
    """A plane that was told something in every way there is."""
    plane = world.plane(start=False)
    plane.data.mkdir()
    file = world.folder / "muster.toml"
    file.write_text(
        "# what this site wants\n"
        "[admission]\n"
        "max_concurrent_per_agent = 3\n"
        "\n"
        "[agents]\n"
        'restart_grace = "20s"\n'
        "\n"
        "[telemetry]\n"
        f'headers = "x-token={SECRETS["file"]}"\n'
    )
    plane.port = free_port()
    plane.url = f"http://127.0.0.1:{plane.port}"
    environment = quiet_environment(
        MUSTER_ADMISSION__QUEUE_CAPACITY="77",
        MUSTER_AUTH__API_KEY=SECRETS["env"],
        AGENTFIELD_AGENT_CALL_TIMEOUT="45",
        AGENTFIELD_APPROVAL_WEBHOOK_SECRET=SECRETS["alias"],
        OTEL_BSP_MAX_QUEUE_SIZE="512",
    )
    words = ["server", "--listen", f"127.0.0.1:{plane.port}", "--data", plane.data, "--config", file]
    plane.child = Child("plane", [binary(), *map(str, words)], env=environment)
    plane.past.append(plane.child)
    plane.wait_ready()
    return plane, world.cli(plane), file, environment


def shown(cli):
    return {value["key"]: value for value in cli("config", "--json").json()["items"]}


def test_every_value_says_where_it_came_from(configured):
    plane, cli, file, _ = configured
    values = shown(cli)

    def of(key):
        value = values[key]
        return value["value"], value["source"], value.get("place")

    assert of("admission.max_concurrent_per_agent") == (3, "file", f"{file}:3")
    assert of("agents.restart_grace")[1:] == ("file", f"{file}:6")
    assert of("admission.queue_capacity") == (77, "environment", "MUSTER_ADMISSION__QUEUE_CAPACITY")
    assert of("agents.call_timeout")[1:] == ("alias", "AGENTFIELD_AGENT_CALL_TIMEOUT")
    assert of("telemetry.queue") == (512, "alias", "OTEL_BSP_MAX_QUEUE_SIZE")
    assert of("server.listen") == (f"127.0.0.1:{plane.port}", "flag", "--listen")
    assert of("store.data")[1:] == ("flag", "--data")
    assert of("agents.dial_timeout")[1:] == ("default", None)
    # The text for people says the same.
    lines = {line.split()[0]: line for line in cli("config").ok().out.splitlines() if line.split()}
    assert f"{file}:3" in lines["admission.max_concurrent_per_agent"]
    assert "MUSTER_ADMISSION__QUEUE_CAPACITY" in lines["admission.queue_capacity"]
    assert "--listen" in lines["server.listen"]
    assert "default" in lines["agents.dial_timeout"]
    only = cli("config", "--set").ok().out
    assert "agents.dial_timeout" not in only and "agents.restart_grace" in only


def test_a_secret_is_shown_to_nobody(configured):
    plane, cli, file, environment = configured
    values = shown(cli)
    for key, source in [("telemetry.headers", "file"), ("auth.api_key", "environment")]:
        assert values[key]["source"] == source, values[key]
    words = ["server", "--listen", "127.0.0.1:0", "--data", str(plane.data), "--config", str(file)]
    seen = [cli("config"), cli("config", "--json"), cli("config", "--set"), cli("config", "auth")]
    texts = [ran.ok().out + ran.err for ran in seen]
    for more in ([], ["--json"]):
        ran = subprocess.run(
            [binary(), *words, "--print-config", *more],
            env=environment, capture_output=True, text=True, timeout=60,
        )
        assert ran.returncode == 0, ran
        texts.append(ran.stdout + ran.stderr)
    texts.append(plane.http.get("/api/v1/config", headers=owner(plane)).text)
    until("it has logged", lambda: "ready" in plane.child.output())
    texts.append(plane.child.output())
    for text in texts:
        for secret in SECRETS.values():
            assert secret not in text, "a secret is shown"


def owner(plane):
    return {"X-API-Key": (plane.data / "owner.key").read_text().strip()}


def test_an_unknown_key_is_refused_with_its_line_and_its_secret_is_not_repeated(world):
    file = world.folder / "wrong.toml"
    file.write_text(f'[auth]\napi_keyy = "{SECRETS["file"]}"\n')
    ran = subprocess.run(
        [binary(), "server", "--config", str(file), "--print-config"],
        env=quiet_environment(HOME=world.folder), cwd=world.folder,
        capture_output=True, text=True, timeout=60,
    )
    assert ran.returncode == 2 and "api_keyy" in ran.stderr, ran
    assert f"{file}:2" in ran.stderr and "api_key" in ran.stderr, ran
    assert SECRETS["file"] not in ran.stdout + ran.stderr, ran
