import { expect, it } from "vitest";
import { type Duty, byNeed, partsOf } from "./duties";

const duty = (name: string, changes: Partial<Duty> = {}): Duty => ({ name, every_seconds: 60, due_at: "", did: "", failed: false, late: false, ...changes });

it("puts late duties first, then failed ones, then the others by name", () => {
  const order = byNeed([duty("webhooks"), duty("keys"), duty("retention", { failed: true }), duty("probes", { late: true })]);
  expect(order.map((each) => each.name)).toEqual(["probes", "retention", "keys", "webhooks"]);
});

it("sums the store's parts, largest first", () => {
  expect(partsOf({ logs: 1, decisions: 5, payloads: 3 })).toEqual({ parts: [["decisions", 5], ["payloads", 3], ["logs", 1]], total: 9 });
});
