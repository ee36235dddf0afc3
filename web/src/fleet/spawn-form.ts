// What is typed into the form for a worker, as the placement that the plane gets. Checks nothing
// that the plane checks; only takes a command line apart.
import type { Wanted } from "./calls";

export type Typed = {
  command: string;
  name: string;
  where: "anywhere" | "node" | "labels";
  node: string;
  labels: string;
  cwd: string;
  env: string;
  io: "pty" | "pipes";
  restart: "never" | "on-failure" | "always";
  max: string;
  queue: string;
};

export const EMPTY: Typed = {
  command: "", name: "", where: "anywhere", node: "", labels: "", cwd: "", env: "",
  io: "pty", restart: "never", max: "", queue: "",
};

/** A command line as words: blanks separate, quotes and backslashes keep together. No shell is run. */
export function wordsOf(line: string): { words: string[]; open?: string } {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at] as string;
    if (quote === "'") {
      if (char === "'") quote = undefined;
      else word += char;
    } else if (char === "\\" && at + 1 < line.length) {
      const next = line[++at] as string;
      word = (word ?? "") + (quote && !'"\\$`'.includes(next) ? `\\${next}` : next);
    } else if (quote === '"') {
      if (char === '"') quote = undefined;
      else word += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= "";
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + char;
  }
  if (word !== undefined) words.push(word);
  return quote ? { words, open: quote } : { words };
}

const list = (text: string) => text.split(/[\s,]+/).filter(Boolean);

/** Lines of `NAME=value`. A line without `=` is said, not dropped. */
export function variablesOf(text: string): { env: Record<string, string>; wrong: string[] } {
  const env: Record<string, string> = {};
  const wrong: string[] = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const at = line.indexOf("=");
    if (at <= 0) wrong.push(line);
    else env[line.slice(0, at).trim()] = line.slice(at + 1);
  }
  return { env, wrong };
}

/** The placement, or why there is none yet. */
export function wantedOf(typed: Typed): { wanted: Wanted } | { missing: string } {
  const { words, open } = wordsOf(typed.command);
  if (open) return { missing: `the quote ${open} in the command is not closed` };
  const [command, ...args] = words;
  if (!command) return { missing: "a command" };
  const { env, wrong } = variablesOf(typed.env);
  if (wrong.length > 0) return { missing: `variables are lines of NAME=value; this is none: ${wrong[0]}` };
  if (typed.where === "node" && typed.node.trim() === "") return { missing: "the node’s name" };
  if (typed.where === "labels" && list(typed.labels).length === 0) return { missing: "at least one label" };
  const max = Number.parseInt(typed.max, 10);
  return {
    wanted: {
      command,
      args,
      ...(typed.name.trim() && { name: typed.name.trim() }),
      ...(typed.cwd.trim() && { cwd: typed.cwd.trim() }),
      ...(Object.keys(env).length > 0 && { env }),
      ...(typed.io !== "pty" && { io: typed.io }),
      ...(typed.restart !== "never" && {
        restart: Number.isFinite(max) ? { mode: typed.restart, max } : typed.restart,
      }),
      ...(typed.where === "node" && { node: typed.node.trim() }),
      ...(typed.where === "labels" && { target_labels: list(typed.labels) }),
      ...(typed.queue.trim() && { queue: typed.queue.trim() }),
    },
  };
}

const shell = (word: string) => (/^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** The same on the command line. Values of variables are not repeated: they may be secret. */
export function commandOf(wanted: Wanted): string {
  const parts = ["muster spawn"];
  if (wanted.node) parts.push(`--node ${shell(wanted.node)}`);
  for (const label of wanted.target_labels ?? []) parts.push(`--label ${shell(label)}`);
  if (wanted.name) parts.push(`--name ${shell(wanted.name)}`);
  if (wanted.cwd) parts.push(`--cwd ${shell(wanted.cwd)}`);
  if (wanted.io === "pipes") parts.push("--pipes");
  if (typeof wanted.restart === "string") parts.push(`--restart ${wanted.restart}`);
  else if (wanted.restart) parts.push(`--restart ${wanted.restart.mode}:${wanted.restart.max}`);
  if (wanted.queue) parts.push(`--queue=${shell(wanted.queue)}`);
  for (const name of Object.keys(wanted.env ?? {})) parts.push(`--env ${shell(name)}`);
  return [...parts, "--", shell(wanted.command), ...wanted.args.map(shell)].join(" ");
}
