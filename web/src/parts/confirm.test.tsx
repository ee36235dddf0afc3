// What the confirmation of an act says when the plane did not answer, and when it does again.
import { createRoot } from "react-dom/client";
import { flushSync } from "react-dom";
import { QueryClientProvider } from "@tanstack/react-query";
import { afterEach, expect, it, vi } from "vitest";
import { Problem } from "@/api/problem";
import { queries } from "@/api/queries";
import { type Act, Confirm } from "./act";

const live = vi.hoisted(() => ({ state: "offline" as string }));
vi.mock("@/live/stream", async (original) => ({ ...(await original<object>()), useLiveState: () => ({ live: { state: live.state }, lastFrameAt: 0, told: {} }) }));

const act: Act = { verb: "Cancel", kind: "ask", danger: true, run: () => Promise.resolve("done") };
function said(): string {
  const box = document.body.appendChild(document.createElement("div"));
  const lost = { is: "failed", problem: new Problem("offline", "the plane did not answer (/api/v1/workflows/run_1/cancel-tree)", 0), during: "sending", key: "k" } as const;
  flushSync(() => createRoot(box).render(<QueryClientProvider client={queries}><Confirm act={act} state={lost} go={() => {}} keep={() => {}} /></QueryClientProvider>));
  return box.textContent ?? "";
}
afterEach(() => document.body.replaceChildren());

it("says that the plane did not answer while it does not", () => {
  live.state = "offline";
  expect(said()).toMatch(/^offline the plane did not answer/);
});
it("does not say offline any more when it answers again, nor that it was done", () => {
  live.state = "live";
  const text = said();
  expect(text).toMatch(/does now\. Whether it was done is not known/);
  expect(text).not.toMatch(/offline/);
  expect(text).toMatch(/Try again/);
});
