import { expect, test } from "vitest";
import { bodyOf, commandOf, type RestartWish } from "./wish";

const plain: RestartWish = { scope: "workflow", reuse: "succeeded-before", fork: false, input: null, reason: "" };
const ID = "exec_01M8NT7F1PEQN8S8EAYKZC1YAE";

test("the command says what the request says, and nothing that holds anyway", () => {
  expect(commandOf(ID, plain)).toBe(`muster restart ${ID}`);
  expect(bodyOf(plain)).toBe('{"scope":"workflow","reuse":"succeeded-before"}');
  const all: RestartWish = { scope: "execution", reuse: "none", fork: true, input: '{"n": 9223372036854775808}', reason: "it's new" };
  expect(commandOf(ID, all)).toBe(
    `muster restart ${ID} --scope execution --reuse none --fork --input '{"n": 9223372036854775808}' --reason 'it'\\''s new'`,
  );
  expect(bodyOf(all)).toContain('"input":{"n": 9223372036854775808}');
});

test("a value that begins like a flag is tied to its flag", () => {
  expect(commandOf(ID, { ...plain, input: " -5 " })).toBe(`muster restart ${ID} --input='-5'`);
  expect(commandOf(ID, { ...plain, input: "" })).toBe(`muster restart ${ID} --input 'null'`);
});
