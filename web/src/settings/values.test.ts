import { expect, it } from "vitest";
import { matching, shownOf } from "./values";

it("writes every value, and says of one that is not set that it is not", () => {
  expect([null, "", "15s", 0, false, [], ["a"], { a: 1 }].map(shownOf)).toEqual(["not set", '""', "15s", "0", "false", "none", '["a"]', '{"a":1}']);
});

it("finds by key and by value, and what was changed", () => {
  const values = [{ key: "fleet.heartbeat", value: "5s", source: "default" }, { key: "server.listen", value: "127.0.0.1:8080", source: "flag" }];
  expect(matching(values, "HEART", false)).toEqual([values[0]]);
  expect(matching(values, "8080", false)).toEqual([values[1]]);
  expect(matching(values, "", true)).toEqual([values[1]]);
});
