// A made-up run in which everything happens that a step can do: for the gallery, where rows, bars
// and cards are looked at in all their states.
import { planeNow } from "@/live/clock";
import type { Segment } from "./columns";
import { FLAG } from "./columns";
import { type Made, forestOf } from "./fixture";

/** The plane's time when it is looked at, in whole seconds: what is open goes on from there. */
export const NOW = Math.floor(planeNow() / 1000) * 1000;
const T = NOW - 20_000;
const at = (seconds: number) => T + seconds * 1000;
const segs = (...list: [kind: Segment[0], from: number, to: number | null][]): Segment[] => list.map(([kind, from, to]) => [kind, at(from), to === null ? null : at(to)]);

const made = (name: string, from: number, to: number | null, segments: Segment[], more: Partial<Made> & { why?: string } = {}): Made & { why?: string } => ({
  parent: 0, name, created: at(from), started: at(from), ended: to === null ? null : at(to), segments, ...more,
});

/** Place of the cancelled subtree's root. */
const TREE = 16;

const STEPS: (Made & { why?: string })[] = [
  { ...made("trip.plan", 0, null, segs(["running", 0, null])), parent: -1 },
  made("geo.resolve", 0.1, 1.3, segs(["dispatch", 0.1, 0.2], ["running", 0.2, 1.3])),
  made("weather.queued", 2, null, segs(["queued", 2, null]), { state: "queued", started: null, attempts: 0, why: "agent weather is full (4/4): position 14 of 29, ≈ 20 s" }),
  made("weather.queued_then_ran", 2, 9, segs(["queued", 2, 5.5], ["dispatch", 5.5, 5.8], ["running", 5.8, 9])),
  made("weather.running", 9, null, segs(["running", 9, null])),
  made("hotel.absorbed", 12, null, segs(["absorbed", 12, null]), { state: "running", reason: "awaiting_agent_restart", attempts: 0, why: "waits for hotel to restart, 8.0 of 15 s" }),
  made("hotel.absorbed_then_ok", 3, 9.5, segs(["absorbed", 3, 6.8], ["dispatch", 6.8, 6.9], ["running", 6.9, 9.5])),
  made("budget.person", 8, null, segs(["running", 8, 9], ["waiting_person", 9, null]), { state: "waiting", reason: "waiting_for_approval", why: "a person decides, 58 m left" }),
  made("budget.approved", 2, 12, segs(["running", 2, 3], ["waiting_person", 3, 10.5], ["running", 10.5, 12]), { reason: "approval_approved" }),
  made("budget.changes_requested", 3, null, segs(["running", 3, 4], ["waiting_person", 4, 9], ["running", 9, null]), { reason: "approval_changes_requested", why: "ada requested changes 11 s ago: cheaper" }),
  made("budget.refused", 2, 8, segs(["running", 2, 3], ["waiting_person", 3, 8]), { state: "cancelled", reason: "approval_rejected", why: "refused by ada: too dear" }),
  made("budget.expired", 2, 10, segs(["running", 2, 3], ["waiting_person", 3, 10]), { state: "cancelled", reason: "approval_expired", why: "nobody decided within 7 s" }),
  made("plan.waits_for_child", 6, null, segs(["running", 6, 7], ["waiting_child", 7, null]), { state: "waiting", reason: "awaiting_child", why: "waits for its call of budget.person" }),
  made("mail.paused", 6, null, segs(["running", 6, 8], ["paused", 8, null]), { state: "paused", flags: FLAG.paused, why: "paused by ci-bot 12 s ago" }),
  made("mail.sent_twice", 4, 9, segs(["dispatch", 4, 4.6], ["running", 4.6, 5.4], ["dispatch", 5.4, 5.8], ["running", 5.8, 9]), { attempts: 2, flags: FLAG.resent }),
  made("geo.reused", 1.4, 1.4, [], { flags: FLAG.replayed, replayOf: "exec_01M8NE0CY4EZA9H2TB47H5V7CJ", attempts: 0, reason: "replayed_from_execution:exec_01M8NE0CY4EZA9H2TB47H5V7CJ" }),
  made("tree.cancelled", 5, 11, segs(["running", 5, 11]), { state: "cancelled", why: "cancelled by ci-bot: no longer needed", receipt: "stopped" }),
  { ...made("tree.cancelled_too", 5.5, 11, segs(["running", 5.5, 11]), { state: "cancelled", receipt: "still_running", flags: FLAG.codeMayRun }), parent: TREE },
  { ...made("tree.cancelled_queued", 6, 11, segs(["queued", 6, 11]), { state: "cancelled", attempts: 0 }), parent: TREE },
  made("job.detached", 13, null, segs(["running", 13, null]), { flags: FLAG.detached }),
  made("trip.helper_observed", 2.5, 4.4, segs(["running", 2.5, 4.4]), { flags: FLAG.observed, attempts: 0 }),
  made("trip.helper_inferred", 2.6, 10, segs(["running", 2.6, 10]), { flags: FLAG.observed | FLAG.inferredEnd, attempts: 0 }),
  made("weather.no_word", 3, 13, segs(["dispatch", 3, 3.2], ["running", 3.2, 13]), { state: "failed", category: "outcome_unknown", flags: FLAG.stoppedKnowing, why: "no word since 14:05:03" }),
  made("weather.orphaned", 3, 12, segs(["dispatch", 3, 3.1], ["running", 3.1, 12]), { state: "failed", category: "agent_restart_orphaned", flags: FLAG.stoppedKnowing, why: "its process is gone and another took its place" }),
  made("report.failed", 4, 4.41, segs(["running", 4, 4.41]), { state: "failed", category: "agent_error", why: "the agent answered 500: KeyError 'city'" }),
  made("report.late", 4, 8, segs(["running", 4, 8]), { state: "failed", category: "agent_timeout", flags: FLAG.lateOutcome | FLAG.stoppedKnowing, why: "no answer within 4 s; an answer came after" }),
  made("report.over_cap", 6, 9, segs(["running", 6, 9]), { flags: FLAG.overCap }),
  made("report.timed_out", 3, 13, segs(["running", 3, 13]), { state: "timeout", category: "agent_timeout", why: "its deadline of 10 s of active time passed" }),
  made("report.gap", 3, 12, segs(["queued", 3, 4], ["running", 8, 10])),
  made("report.unheard_of", 3, null, segs(["running", 3, null]), { state: "levitating" }),
  ...Array.from({ length: 24 }, (_, n) => made("weather.lookup", 2 + n * 0.1, 4 + ((n * 7) % 9), segs(["running", 2 + n * 0.1, 4 + ((n * 7) % 9)]), n % 9 === 3 ? { state: "failed", category: "agent_error", why: "KeyError 'city'" } : {})),
];

const forest = forestOf(STEPS);
export const EVERY_ROW = { ...forest, steps: forest.steps.map((step) => ({ ...step, why: STEPS[step.index]?.why ?? null })) };
