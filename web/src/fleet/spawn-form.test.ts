import { describe, expect, it } from "vitest";
import { EMPTY, commandOf, variablesOf, wantedOf, wordsOf } from "./spawn-form";

describe("a command line", () => {
  it("is taken apart as a shell would, without one", () => {
    expect(wordsOf(`python -m agent --name "two words" 'it''s' a\\ b`).words).toEqual(["python", "-m", "agent", "--name", "two words", "its", "a b"]);
    expect(wordsOf(`sh -c 'echo $HOME; rm -rf "x"'`).words).toEqual(["sh", "-c", `echo $HOME; rm -rf "x"`]);
    expect(wordsOf(`a "" ''`).words).toEqual(["a", "", ""]);
    expect(wordsOf(`a "\\n\\""`).words).toEqual(["a", `\\n"`]);
  });
  it("says a quote that is open instead of guessing", () => {
    expect(wantedOf({ ...EMPTY, command: "sh -c 'x" })).toEqual({ missing: "the quote ' in the command is not closed" });
  });
});

it("drops no variable silently", () => {
  expect(variablesOf("A=1\n\nB=x=y\nnonsense")).toEqual({ env: { A: "1", B: "x=y" }, wrong: ["nonsense"] });
});

it("sends only what was chosen, and says the same as a command without secrets", () => {
  const made = wantedOf({ ...EMPTY, command: "bash -c 'sleep 9'", where: "labels", labels: "gpu, zone=eu", env: "TOKEN=secret", restart: "on-failure", max: "5", queue: "10m" });
  expect(made).toEqual({
    wanted: {
      command: "bash", args: ["-c", "sleep 9"], env: { TOKEN: "secret" },
      restart: { mode: "on-failure", max: 5 }, target_labels: ["gpu", "zone=eu"], queue: "10m",
    },
  });
  if (!("wanted" in made)) throw new Error("no placement");
  expect(commandOf(made.wanted)).toBe("muster spawn --label gpu --label zone=eu --restart on-failure:5 --queue=10m --env TOKEN -- bash -c 'sleep 9'");
});
