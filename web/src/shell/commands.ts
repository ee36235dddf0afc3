// The command line that shows what a page shows: beside every entry of the palette that is about
// something the plane knows. Pure.
import { shortId } from "@/look/format";

const PLACES: [pattern: RegExp, command: (id: string) => string][] = [
  [/^\/runs\/([^/]+)$/, (id) => `muster runs show ${id}`],
  [/^\/executions\/([^/]+)$/, (id) => `muster executions show ${id}`],
  [/^\/agents\/([^/]+)$/, (id) => `muster agents show ${id}`],
  [/^\/agents\/([^/]+\/call\/[^/]+)$/, (id) => `muster call ${id.replace("/call/", ".")} --input '{}'`],
  [/^\/fleet\/nodes\/([^/]+)$/, (id) => `muster nodes show ${id}`],
  [/^\/fleet\/workers\/([^/]+)$/, (id) => `muster workers show ${id}`],
  [/^\/fleet\/workers\/([^/]+)\/terminal$/, (id) => `muster attach ${id}`],
  [/^\/queues\/([^/]+)$/, (id) => `muster queues show ${id}`],
];

/** The command for a path below `/ui`; ids in their short form, which every command takes. */
export function commandOf(path: string): string | undefined {
  const [place = "", query = ""] = path.split("?");
  if (place === "/compare") {
    const asked = new URLSearchParams(query);
    const [a, b] = [asked.get("a"), asked.get("b")];
    return a && b ? `muster compare ${shortId(a)} ${shortId(b)}` : undefined;
  }
  for (const [pattern, command] of PLACES) {
    const found = pattern.exec(place)?.[1];
    if (!found) continue;
    try {
      return command(found.split("/").map((part) => shortId(decodeURIComponent(part))).join("/"));
    } catch {
      return undefined;
    }
  }
  return undefined;
}
