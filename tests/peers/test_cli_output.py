"""What a person sees on a real terminal and a program in a pipe: widths, character sets, whole ids,
the live tree, `--watch`, `-q`, and that every command that is told runs."""

import os
import re
import shlex
import subprocess
import threading
import time
import unicodedata

import pytest

from harness.plane import binary
from harness.tty import Tty
from harness.waiting import until

SETTINGS = {"admission__max_concurrent_per_agent": 2, "fleet__start_window": "300ms"}
WHOLE = re.compile(r"^(exec|run|node|wrk|key|msg)_[0-9A-Za-z]{10,}$")


@pytest.fixture(scope="module")
def busy(module_world):
    """Something of everything that is listed."""
    plane = module_world.plane(**SETTINGS)
    cli = module_world.cli(plane)
    module_world.plain_agent(plane, "plain")
    module_world.plain_agent(plane, "other")
    gone = module_world.plain_agent(plane, "gone")
    gone.stop()
    plane.http.post("/api/v1/nodes/gone/shutdown", json={}).raise_for_status()
    module_world.node(cli, "edge-1")
    done = cli("call", "other.now", "--json").json()
    again = cli("call", "other.now", "--json").json()
    cli("call", "other.boom", "--json")
    for _ in range(5):
        cli("call", "plain.mute", "--async").ok()
    cli("spawn", "--name", "sleeper", "--", "sleep", "600").ok()
    cli("keys", "create", "--scope", "read", "--name", "ci").ok()
    cli("hold", "other", "--reason", "a look at what it does").ok()
    yield cli, done, again
    cli("release", "sleeper", "--grace", "0s")


def commands(done, again):
    lists = """overview|executions|executions --state queued|runs|agents|agents show plain
        |agents history plain|queues|queues show plain|nodes|nodes show edge-1|nodes history edge-1
        |workers|workers show sleeper|fleet|drift|approvals|tags|keys list|webhooks list
        |quarantine list|audit|usage|usage --by run|config|config --set|search plain|why plain
        |why edge-1|why sleeper|why plain --kind queue|doctor"""
    words = [line.split() for line in lists.replace("\n", " ").split("|")]
    words += [["why", done["id"]], ["why", done["run_id"]], ["runs", "show", done["run_id"]]]
    words += [["compare", done["run_id"], again["run_id"], "--all"]]
    return words


def columns(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def on_terminal(world, cli, words, cols, **environment):
    terminal = world.also(Tty(cli, *words, cols=cols, environment=environment))
    terminal.wait()
    return terminal.shown.replace("\r\n", "\n")


@pytest.mark.parametrize("cols", [60, 80, 120])
def test_every_table_fits_its_terminal_and_cuts_no_id(module_world, busy, cols):
    """Row: 60 to 120 columns, `NO_COLOR`: no line is wider, no id is cut."""
    cli, done, again = busy
    for words in commands(done, again):
        text = on_terminal(module_world, cli, words, cols, NO_COLOR="1")
        assert text.strip() and "\x1b" not in text, (words, text)
        for line in text.splitlines():
            long = [word for word in line.split() if len(word) > 24 or "=" in word]
            # Beside what may not be cut: ids, addresses, evidence on its own line, sentences.
            indented = line.startswith(("  ", "rule", "next", "or ", "not ", "hint:"))
            assert columns(line) <= cols or long or indented, (words, cols, columns(line), line)
        for word in re.findall(r"\b(?:exec|run|wrk|key|msg|node)_\S+", text):
            word = word.strip("`,;:.)\"'")
            short = re.fullmatch(r"[a-z]+_…\w{6}", word)
            assert short or WHOLE.match(word) or "…" not in word, (words, word)


def test_a_pipe_has_whole_ids_no_colour_and_no_cuts_and_the_columns_of_a_wide_terminal(module_world, busy):
    cli, done, again = busy
    for words in commands(done, again):
        ran = cli(*words)
        assert "\x1b" not in ran.out and not re.search(r"[a-z]+_…", ran.out), (words, ran)
    wide = on_terminal(module_world, cli, ["executions"], 160, NO_COLOR="1").splitlines()[0]
    assert cli("executions").ok().out.splitlines()[0].split() == wide.split()
    assert done["id"] in cli("executions").ok().out and done["run_id"] in cli("executions").ok().out


def test_without_utf8_everything_of_ours_is_ascii_and_states_are_words(module_world, busy):
    cli, done, again = busy
    for words in commands(done, again):
        text = on_terminal(module_world, cli, words, 80, NO_COLOR="1", LC_ALL="C")
        assert text.isascii(), (words, [line for line in text.splitlines() if not line.isascii()])
    shown = on_terminal(module_world, cli, ["executions"], 120, NO_COLOR="1", LC_ALL="C")
    assert re.search(r"^ok +succeeded", shown, re.M) and re.search(r"^fail +failed", shown, re.M), shown


def test_colour_is_asked_for_and_refused_as_documented(busy):
    cli, _, _ = busy

    def has_colour(*words, **environment):
        ran = subprocess.run(
            [binary(), *words], env={**cli.environment(), **environment}, cwd=cli.folder,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )
        assert ran.returncode == 0, ran
        return "\x1b[" in ran.stdout

    assert not has_colour("executions")
    assert has_colour("executions", CLICOLOR_FORCE="1")
    assert has_colour("executions", "--color", "always", NO_COLOR="1")
    assert not has_colour("executions", "--color", "never", CLICOLOR_FORCE="1")
    assert not has_colour("executions", NO_COLOR="1", CLICOLOR_FORCE="1")


def test_a_live_tree_is_bounded_in_rows_and_redraws_and_its_end_stays(module_world, busy, tmp_path):
    """Row: the tree has at most rows - 2 lines, is drawn at most 10 times a second, the final one
    stays, then one sentence, and the result alone is on stdout."""
    cli, _, _ = busy
    plane = cli.plane
    slow = module_world.plain_agent(plane, "slow", take=4.0)
    many = module_world.plain_agent(plane, "many")
    assert slow and many
    with open(tmp_path / "out", "wb") as out:
        began = time.monotonic()
        terminal = module_world.also(Tty(cli, "call", "slow.later", rows=14, cols=90, out=out))
        terminal.see("Ctrl-C leaves it running")
        rows = cli("executions", "--agent", "slow", "--json").json()["items"]
        run = rows[0]["run_id"]
        stop = threading.Event()

        def crowd():
            # Its run grows, and something happens all the time.
            while not stop.is_set():
                plane.call("many.now", X_Run_ID=run)

        callers = [threading.Thread(target=crowd) for _ in range(3)]
        for caller in callers:
            caller.start()
        assert terminal.wait() == 0
        took = time.monotonic() - began
        stop.set()
        for caller in callers:
            caller.join()
    assert (tmp_path / "out").read_text() == '{"ok": true}\n' or (tmp_path / "out").read_text() == '{"ok":true}\n'
    shown = terminal.shown.replace("\r\n", "\n")
    frames = re.split(r"\x1b\[\d+A\r?\x1b\[J", shown)
    assert len(frames) >= 5, "it was drawn again and again"
    assert len(frames) <= took * 10 + 2, (len(frames), took)
    for frame in frames[:-1]:
        assert frame.count("\n") <= 12, frame
        assert "Ctrl-C leaves it running" in frame, frame
    last = frames[-1]
    assert "Ctrl-C" not in last and "slow.later" in last, last
    said = last.rstrip().splitlines()[-1]
    counted = re.search(r"✓.* slow\.later succeeded [\d.]+ s, ([\d,]+) steps", said)
    assert counted, said
    few = int(counted[1].replace(",", "")) <= 12
    assert few or "more steps not shown" in last or "×" in last, last
    assert "\x1b[?1049h" not in shown, "no alternate screen"


def test_quiet_is_the_result_and_nothing_else(module_world, busy, tmp_path):
    cli, _, _ = busy
    module_world.plain_agent(cli.plane, "hush", take=0.5)
    with open(tmp_path / "out", "wb") as out:
        terminal = module_world.also(Tty(cli, "call", "hush.later", "-q", out=out))
        assert terminal.wait() == 0
    assert terminal.shown == "", "nothing on stderr, though it is a terminal"
    assert (tmp_path / "out").read_text().strip() in ('{"ok":true}', '{"ok": true}')
    ran = cli("call", "hush.later", "-q").ok()
    assert ran.err == "" and ran.out.count("\n") == 1, ran


def test_a_terminal_too_narrow_to_draw_in_is_not_drawn_in(module_world, busy):
    cli, _, _ = busy
    module_world.plain_agent(cli.plane, "thin", take=0.5)
    terminal = module_world.also(Tty(cli, "call", "thin.later", cols=40))
    assert terminal.wait() == 0
    assert "A\r" not in terminal.shown and "succeeded" in terminal.shown, terminal.shown


def test_a_watched_list_is_painted_in_place_on_a_terminal_and_appended_in_a_pipe(module_world, busy):
    cli, _, _ = busy
    module_world.plain_agent(cli.plane, "seen")
    terminal = module_world.also(Tty(cli, "executions", "--watch", rows=10, cols=90))
    terminal.see("STATE")
    for _ in range(3):
        mark = terminal.mark()
        cli("call", "seen.now", "-q").ok()
        terminal.see("seen.now", after=mark)
    os.killpg(terminal.process.pid, 2)
    assert terminal.wait() == 130
    frames = re.split(r"\x1b\[\d+A\r?\x1b\[J", terminal.shown.replace("\r\n", "\n"))
    assert len(frames) >= 4, "painted over what was there"
    assert all(frame.count("\n") <= 9 for frame in frames), frames
    assert "\x1b[?1049h" not in terminal.shown

    watching = subprocess.Popen(
        [binary(), "executions", "--watch", "--limit", "1"],
        env=cli.environment(), cwd=cli.folder, stdout=subprocess.PIPE, text=True,
    )
    try:
        assert watching.stdout.readline().startswith("STATE")
        watching.stdout.readline()
        cli("call", "seen.now", "-q").ok()
        assert watching.stdout.readline().startswith("STATE"), "the list again, and no escapes"
        assert "\x1b" not in watching.stdout.readline()
    finally:
        watching.kill()
        watching.wait(30)


def test_ctrl_c_ends_at_once_whatever_it_waits_for(module_world, busy):
    """Row: a Ctrl-C that comes while the plane is asked, or while events come all the time, is
    neither lost nor late."""
    cli, _, _ = busy
    module_world.plain_agent(cli.plane, "storm")
    # What is left running keeps its slot: not one of those that the storm needs.
    module_world.plain_agent(cli.plane, "silent")
    stop = threading.Event()

    def crowd():
        while not stop.is_set():
            cli.plane.call("storm.now")

    callers = [threading.Thread(target=crowd) for _ in range(2)]
    for caller in callers:
        caller.start()
    try:
        for words, code in [
            (["executions", "--watch"], 130),
            (["overview", "--watch"], 130),
            (["tail"], 130),
            (["call", "silent.mute"], 130),
        ] * 3:
            terminal = module_world.also(Tty(cli, *words, rows=12, cols=90))
            until(f"{words} shows something", lambda: terminal.shown, 60)
            os.killpg(terminal.process.pid, 2)
            began = time.monotonic()
            assert terminal.process.wait(20) == code, words
            assert time.monotonic() - began < 10, words
    finally:
        stop.set()
        for caller in callers:
            caller.join()


LOOKS = {"overview", "why", "search", "config", "audit", "usage", "doctor", "help", "openapi", "compare", "drift"}


def told(text):
    """The commands that a text tells: in backticks, or behind a colon to the line's end."""
    found = re.findall(r"`(muster [^`]+)`", text)
    found += re.findall(r"(?:: |  |· )(muster [a-z][^\n·`]*)", text)
    # What a machine says it runs is no command.
    return {line.strip() for line in found if not line.startswith("muster node muster/")}


def test_the_commands_that_are_told_run(module_world, busy):
    """Row: hints, evidence and lists tell commands to copy: each runs as it stands there."""
    cli, done, again = busy
    texts = [cli(*words) for words in commands(done, again)]
    texts += [cli("why", one["id"]) for one in cli("executions", "--json", "--limit", "30").json()["items"]]
    texts += [cli("call", "gone.now", within=60), cli("call", "no.one"), cli("cancel", done["run_id"])]
    texts += [cli("executions", "show", "exec_nothing"), cli("nodes", "show", "nobody"), cli("levitate")]
    lines = set().union(*(told(ran.out) | told(ran.err) for ran in texts))
    assert len(lines) > 8, lines
    acts, placeholder = [], re.compile(r"\b[A-Z]{2,}\b|…$|<|exec_…$")
    for line in sorted(lines):
        words = shlex.split(line.split(" # ")[0])[1:]
        if "dev" in words[:1] or "--" in words:
            # Starts something of yours.
            continue
        if placeholder.search(line):
            # A place to fill in: the command is there.
            assert cli(*[word for word in words if word.islower()][:1], "--help").code == 0, line
            continue
        if words[0] in LOOKS or "show" in words or "list" in words or words[0].endswith("s") and len(words) == 1:
            ran = cli(*words)
            assert ran.code == 0 or words[0] == "doctor", (line, ran)
        elif words[0] in ("executions", "runs", "agents", "nodes", "workers", "queues") and words[1:2] and words[1].startswith("-"):
            assert cli(*words).code == 0, line
        else:
            acts.append((line, words))
    assert acts, "some of them change something"
    for line, words in acts:
        if words[0] in ("attach", "logs"):
            continue
        ran = cli(*words)
        # Done, or refused for its state, or asked for a yes; never for what it is.
        assert ran.code in (0, 65) or "--yes" in ran.err, (line, ran)
