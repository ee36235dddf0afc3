"""Completions through the real binary: the protocol that the shells' scripts speak, real bash with
the script loaded, and a plane that is not there or says nothing."""

import shutil
import socket
import subprocess
import time

import pytest

from harness.plane import binary
from harness.waiting import free_port


@pytest.fixture(scope="module")
def site(module_world):
    plane = module_world.plane(fleet__start_window="300ms")
    cli = module_world.cli(plane)
    module_world.plain_agent(plane, "billing")
    module_world.plain_agent(plane, "bilge")
    module_world.node(cli, "edge-1")
    cli("spawn", "--name", "coder-1", "--", "sleep", "600").ok()
    done = cli("call", "billing.now", "--json").json()
    yield cli, done
    cli("release", "coder-1", "--grace", "0s")


def offered(cli, *words, shell="zsh", server=None):
    """What is offered for the last word, each with what stands beside it."""
    environment = cli.environment()
    environment.update(COMPLETE=shell, _CLAP_COMPLETE_INDEX=str(len(words)), _CLAP_IFS="\n")
    if server:
        environment["MUSTER_SERVER"] = server
    ran = subprocess.run(
        [binary(), "--", "muster", *words],
        env=environment, cwd=cli.folder, capture_output=True, text=True, timeout=30,
    )
    assert ran.returncode == 0 and ran.stderr == "", ran
    return ran.stdout.split("\n")


def names(cli, *words, **more):
    # zsh: `value:what it is`, with colons of the value escaped.
    return [line.replace("\\:", "\0").split(":")[0].replace("\0", ":") for line in offered(cli, *words, **more)]


PLACES = [
    (["agents", "show", "bil"], {"billing", "bilge"}),
    (["agents", "retire", "billi"], {"billing"}),
    (["hold", "b"], {"billing", "bilge"}),
    (["queues", "cap", ""], {"billing", "bilge"}),
    (["call", "billing."], {"billing.now", "billing.later", "billing.mute", "billing.boom"}),
    (["nodes", "drain", ""], {"edge-1"}),
    (["spawn", "--node", "e"], {"edge-1"}),
    (["attach", "cod"], {"coder-1"}),
    (["logs", "cod"], {"coder-1"}),
    (["why", "edge"], {"edge-1"}),
    (["executions", "--agent", "bilg"], {"bilge"}),
    (["executions", "--category", "agent_e"], {"agent_error"}),
    (["executions", "--state", ""], {
        "queued", "running", "waiting", "paused", "succeeded", "failed", "cancelled", "timeout",
    }),
    (["executions", "--state", "queued,wai"], {"queued,waiting"}),
    (["runs", "--state", "fail"], {"failed"}),
    (["workers", "--state", "ex"], {"exited"}),
    (["approvals", "--status", "req"], {"request_changes"}),
    (["webhooks", "list", "--state", ""], {"pending", "delivered", "dead"}),
    (["keys", "create", "--scope", "re"], {"read", "relay"}),
    (["audit", "--action", "key.cr"], {"key.created"}),
    (["usage", "--by", "d"], {"day"}),
    (["nodes", "pin", "edge-1", "sus"], {"suspect"}),
    (["spawn", "--restart", "on"], {"on-failure"}),
    (["queues", "cap", "billing", "de"], {"default"}),
    (["search", "st"], {"state:"}),
    (["config", "admission.max"], {"admission.max_concurrent_per_agent"}),
]


@pytest.mark.parametrize("words, wanted", PLACES, ids=[" ".join(words) for words, _ in PLACES])
def test_what_the_plane_knows_is_offered(site, words, wanted):
    cli, _ = site
    found = set(names(cli, *words))
    assert wanted <= found, found
    # Beside what the plane knows only flags are offered.
    assert not {name for name in found - wanted if name and not name.startswith("-")}, found


def test_ids_are_offered_with_what_they_are(site):
    cli, done = site
    lines = offered(cli, "executions", "show", done["id"][:12])
    assert any(line.startswith(done["id"]) and "succeeded billing.now" in line for line in lines), lines
    assert done["run_id"] in names(cli, "runs", "show", "run_")
    both = names(cli, "cancel", "")
    assert done["id"] in both and done["run_id"] in both
    key = cli("keys", "create", "--scope", "read", "--name", "k", "--json").json()["id"]
    assert key in names(cli, "keys", "revoke", "key_")
    assert done["id"] in offered(cli, "why", done["id"][:14], shell="bash")


def test_the_plane_of_the_line_is_asked(site):
    cli, _ = site
    nowhere = f"http://127.0.0.1:{free_port()}"
    assert "billing" not in names(cli, "agents", "show", "bil", server=nowhere)
    url = cli.plane.url
    assert "billing" in names(cli, "--server", url, "agents", "show", "bil", server=nowhere)
    assert "billing" in names(cli, f"--server={url}", "agents", "show", "bil", server=nowhere)


def test_a_plane_that_is_away_or_silent_costs_no_time_and_says_nothing(site):
    cli, _ = site
    # Takes connections and never says a word.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for server in (f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{silent.getsockname()[1]}"):
            began = time.monotonic()
            found = names(cli, "why", "bil", server=server)
            assert time.monotonic() - began < 5, "somebody waits who pressed a key"
            assert "billing" not in found, found
            # Commands and flags are known without one.
            assert "agents" in names(cli, "agen", server=server)
            assert "--watch" in names(cli, "runs", "--wat", server=server)


def test_another_meaning_of_the_variable_changes_nothing(site):
    cli, _ = site
    environment = {**cli.environment(), "COMPLETE": "1"}
    ran = subprocess.run(
        [binary(), "agents"], env=environment, cwd=cli.folder, capture_output=True, text=True, timeout=30
    )
    assert ran.returncode == 0 and "billing" in ran.stdout, ran


def test_bash_completes_with_the_script(site):
    """Row: the script of `muster completions bash`, loaded by bash itself."""
    cli, done = site
    folder = cli.folder / "path"
    folder.mkdir()
    (folder / "muster").symlink_to(binary())
    script = cli.folder / "muster.bash"
    script.write_text(cli("completions", "bash").ok().out)
    assert str(cli.folder) not in script.read_text(), "it is found in the path"

    def completed(*words):
        line = f"""
            . {script}
            COMP_WORDS=(muster {" ".join(repr(word) for word in words)})
            COMP_CWORD={len(words)} COMP_TYPE=9
            _clap_complete_muster muster '{words[-1]}' ''
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        environment = {**cli.environment(), "PATH": f"{folder}:/usr/bin:/bin"}
        ran = subprocess.run(
            ["bash", "--norc", "-c", line], env=environment, cwd=cli.folder, capture_output=True, text=True, timeout=30,
        )
        assert ran.returncode == 0, ran
        return ran.stdout.split()

    assert completed("agents", "sh") == ["show"]
    assert completed("agents", "show", "billi") == ["billing"]
    assert set(completed("call", "bilge.")) >= {"bilge.now", "bilge.mute"}
    assert completed("executions", "show", done["id"][:20]) == [done["id"]]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "elvish", "powershell"])
def test_every_shell_has_a_script_that_asks_the_binary(site, shell):
    cli, _ = site
    script = cli("completions", shell).ok().out
    assert "COMPLETE" in script and "muster" in script, script
    check = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}.get(shell)
    if check and shutil.which(check[0]):
        path = cli.folder / f"script.{shell}"
        path.write_text(script)
        subprocess.run([*check, path], check=True, timeout=30)
