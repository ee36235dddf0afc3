// What an act goes through, as a table: ready, checking, confirm, sending, done or failed. Knows
// no React and sends nothing. Two clicks are one change because only `ready` and `confirm` move on.
import type { ReactNode } from "react";
import { Problem } from "@/api/problem";

export type ActState =
  | { is: "ready" }
  | { is: "checking" }
  | { is: "confirm"; says: ReactNode; key: string }
  | { is: "sending"; key: string; says?: ReactNode }
  | { is: "done"; says: ReactNode; partial: boolean }
  | { is: "undoing"; says: ReactNode }
  | { is: "undone"; says: ReactNode }
  | { is: "failed"; problem: Problem; during: "checking" | "sending" | "undoing"; key: string };

export type ActEvent =
  | { event: "open"; kind: "undo" | "ask" | "wide"; key: string }
  | { event: "checked"; says: ReactNode; key: string }
  | { event: "go" }
  | { event: "ended"; says: ReactNode; partial: boolean }
  | { event: "undo" }
  | { event: "undone"; says: ReactNode }
  | { event: "failed"; problem: Problem }
  | { event: "keep" };

export function next(state: ActState, event: ActEvent): ActState {
  switch (event.event) {
    case "open":
      if (state.is !== "ready" && state.is !== "failed" && state.is !== "done" && state.is !== "undone") return state;
      return event.kind === "undo" ? { is: "sending", key: event.key } : { is: "checking" };
    case "checked":
      return state.is === "checking" ? { is: "confirm", says: event.says, key: event.key } : state;
    case "go":
      if (state.is === "confirm") return { is: "sending", key: state.key, says: state.says };
      // The same key again: a lost answer is asked for, not done twice.
      if (state.is === "failed" && state.during === "sending") return { is: "sending", key: state.key };
      return state;
    case "ended":
      return state.is === "sending" ? { is: "done", says: event.says, partial: event.partial } : state;
    case "undo":
      return state.is === "done" ? { is: "undoing", says: state.says } : state;
    case "undone":
      return state.is === "undoing" ? { is: "undone", says: event.says } : state;
    case "failed":
      if (state.is === "checking") return { is: "failed", problem: event.problem, during: "checking", key: "" };
      if (state.is === "sending") return { is: "failed", problem: event.problem, during: "sending", key: state.key };
      if (state.is === "undoing") return { is: "failed", problem: event.problem, during: "undoing", key: "" };
      return state;
    case "keep":
      return state.is === "sending" || state.is === "undoing" ? state : { is: "ready" };
  }
}

/** A receipt that says that not all was done. */
export class Partly {
  constructor(readonly says: ReactNode) {}
}

/** Whether the typed name confirms: exact but for space around it. */
export const confirms = (typed: string, wanted: string) => typed.trim() === wanted.trim() && wanted.trim() !== "";
