import { expect, it } from "vitest";
import { sayLive } from "./indicator";

const clock = () => "14:02:11";
it("a phone is told the age too, without the words", () => {
  expect(sayLive({ state: "live" }, 400, clock)).toMatchObject({ text: "Live now", short: "now" });
  expect(sayLive({ state: "live" }, 3_200, clock)).toMatchObject({ text: "Live 3 s", short: "3 s" });
  expect(sayLive({ state: "paused", held: 41 }, 0, clock)).toMatchObject({ text: "Paused, 41 held", short: "41 held" });
  expect(sayLive({ state: "reconnecting", since: 0 }, 14_000, clock)).toMatchObject({ text: "Reconnecting, data 14 s old", short: "14 s old" });
});
it("what has not come yet has no age", () => {
  expect(sayLive({ state: "reconnecting", since: 0 }, undefined, clock).short).toBe("Connecting");
  expect(sayLive({ state: "live" }, undefined, clock).short).toBe("Live");
});
