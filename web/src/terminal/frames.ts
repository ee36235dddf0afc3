// The frames of a worker's terminal, as the plane speaks them (docs/fleet-api.md). Reads and
// writes them; knows no socket and no screen. A frame of a type it does not know is nothing.

export type News =
  | { type: "ready"; screen: Uint8Array; rows: number; cols: number; offset: number }
  | { type: "output"; chunk: string; offset: number; dropped: number }
  | { type: "ack"; bytes: number }
  | { type: "driver"; driving: boolean; driver: string | null; viewers: number; why?: string }
  | { type: "error"; code: string; message: string }
  | { type: "closed"; code: string; message: string };

/** The largest piece of input in one frame. */
export const INPUT_MAX = 64 * 1024;

export function bytesOf(base64: string): Uint8Array {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
}

export function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

const number = (value: unknown) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
const text = (value: unknown) => (typeof value === "string" ? value : "");

/** One frame; `undefined` when it is none, or of a type that is not known here. */
export function newsOf(frame: string): News | undefined {
  let said: Record<string, unknown>;
  try {
    said = JSON.parse(frame) as Record<string, unknown>;
  } catch {
    return undefined;
  }
  switch (said.type) {
    case "terminal.ready":
      try {
        return { type: "ready", screen: bytesOf(text(said.screen)), rows: number(said.rows), cols: number(said.cols), offset: number(said.offset) };
      } catch {
        return undefined;
      }
    case "terminal.output":
      return { type: "output", chunk: text(said.chunk), offset: number(said.offset), dropped: number(said.dropped) };
    case "terminal.input_ack":
      return { type: "ack", bytes: number(said.bytes_written) };
    case "terminal.driver":
      return {
        type: "driver", driving: said.driving === true, driver: typeof said.driver === "string" ? said.driver : null,
        viewers: number(said.viewers), why: typeof said.why === "string" ? said.why : undefined,
      };
    case "terminal.error":
      return { type: "error", code: text(said.code), message: text(said.message) };
    case "terminal.closed":
      return { type: "closed", code: text(said.code), message: text(said.message) };
    default:
      return undefined;
  }
}

/** What was typed, in frames that the plane takes. */
export function inputFrames(typed: Uint8Array): string[] {
  const frames: string[] = [];
  for (let at = 0; at < typed.length; at += INPUT_MAX) {
    frames.push(JSON.stringify({ type: "terminal.input", data_base64: base64Of(typed.subarray(at, at + INPUT_MAX)) }));
  }
  return frames;
}

export const driveFrame = (take: boolean) => JSON.stringify({ type: "terminal.drive", take });
export const watchFrame = () => JSON.stringify({ type: "terminal.watch" });
export const resizeFrame = (rows: number, cols: number) => JSON.stringify({ type: "terminal.resize", rows, cols });
