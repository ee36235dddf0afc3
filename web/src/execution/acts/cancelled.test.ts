import { expect, it } from "vitest";
import { tallied } from "@/runs/cancelled";
import { cancelledWords } from "./cancelled";

const done = { cancelled: ["exec_1", "exec_2", "exec_3"], told: 2 };

it("says that agents are told before any has answered", () => {
  expect(cancelledWords(done)).toBe("ended 3, telling 2 agents: their code may still run");
  expect(cancelledWords(done, tallied(["unanswered", "unanswered", null]))).toBe("ended 3, telling 2 agents: their code may still run");
});
it("says what they answered, and what is still not known", () => {
  expect(cancelledWords(done, tallied(["stopped", "unanswered", null]))).toBe("ended 3: told 1, stopped 1, not known 1");
  expect(cancelledWords(done, tallied(["not_told", "still_running", null]))).toBe("ended 3: told 1, stopped 0, still running 1, not known 1");
});
it("tells nobody of what no agent had", () => {
  expect(cancelledWords({ cancelled: ["exec_1"], told: 0 })).toBe("ended 1");
});
