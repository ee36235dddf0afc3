// What a page asks the plane for: nothing that its reader may not have, for a refusal helps nobody.
import { type Root, createRoot } from "react-dom/client";
import { QueryClientProvider } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { queries } from "@/api/queries";
import { answerTo, document as contract } from "./answers";
import { Shell } from "./shell";

vi.mock("@/live/tab", () => ({ joinLink: () => ({ topics() {}, now() {} }) }));

/** The routes that want more than `read`, as the contract says. */
const WANTS = Object.entries(contract.paths).flatMap(([path, methods]) => {
  const scope = /with scope (admin|operate)\b/.exec(JSON.stringify(methods.get ?? {}))?.[1];
  return scope ? [{ scope, route: new RegExp(`^${path.replaceAll(/\{[^}]+\}/g, "[^/]+")}$`) }] : [];
});

let root: Root | undefined;
let asked: string[];
let reader: object;
/** Of what is not there. */
let unknown: RegExp | undefined;
/** As of a session that has ended: refused as soon as it is asked for. */
let refuses: RegExp | undefined;

beforeEach(() => {
  asked = [];
  refuses = undefined;
  unknown = undefined;
  vi.stubGlobal("fetch", async (input: RequestInfo | URL) => {
    const address = String(input instanceof Request ? input.url : input).replace(/^https?:\/\/[^/]+/, "");
    asked.push(address);
    const refused = refuses?.test(address);
    if (unknown?.test(address)) return new Response(JSON.stringify({ error_category: "not_found", message: "there is no such thing" }), { status: 404 });
    const answer = address === "/api/v1/session" ? reader : refused ? { error_category: "unauthenticated", message: "this needs a key" } : answerTo(address, "nulls");
    return new Response(JSON.stringify(answer), { status: refused ? 401 : 200, headers: { "content-type": "application/json" } });
  });
});
afterEach(async () => {
  leave();
  vi.unstubAllGlobals();
});

const AT_HOME = { signed_in: false, by: "loopback", principal: "owner", scopes: ["read", "call", "agent"], key_id: null, loopback: true, needs: [{ scope: "operate", what: "" }, { scope: "admin", what: "" }] };
const READS = { ...AT_HOME, signed_in: true, by: "session", scopes: ["read"], key_id: "key_1" };

function leave(): void {
  root?.unmount();
  root = undefined;
  queries.clear();
  document.body.replaceChildren();
}

const seen = (text: RegExp) => vi.waitFor(() => expect(document.querySelector("main")?.textContent).toMatch(text), { timeout: 4_000, interval: 20 });

async function says(path: string, text: RegExp): Promise<void> {
  window.history.replaceState(null, "", `/ui${path}`);
  const box = document.body.appendChild(document.createElement("div"));
  root = createRoot(box);
  root.render(<QueryClientProvider client={queries}><Shell /></QueryClientProvider>);
  await seen(text);
}

const refusedOnes = (scopes: string[]) => asked.filter((address) => WANTS.some(({ scope, route }) => !scopes.includes(scope) && route.test(address.split("?")[0] ?? "")));

it("the contract names what wants a scope", () => {
  for (const path of ["/api/v1/keys", "/api/v1/audit", "/api/v1/fleet/enrollments", "/api/v1/fleet/workers/wrk_1/output"]) {
    expect(WANTS.some(({ route }) => route.test(path)), path).toBe(true);
  }
});

it.each([
  ["/settings/keys", "Seeing and changing keys"], ["/settings/nodes", "Adding a machine"], ["/settings/audit", "Reading the audit log"],
])("%s asks for a key, and the plane for nothing", async (path, what) => {
  for (const who of [AT_HOME, READS]) {
    reader = who;
    await says(path, new RegExp(`${what} needs a key with the scope admin`));
    expect(refusedOnes([])).toEqual([]);
    leave();
  }
});

it("the configuration is shown without a key at home, and not to a key that only reads", async () => {
  reader = READS;
  await says("/settings/configuration", /Seeing the configuration needs a key/);
  expect(asked).not.toContain("/api/v1/config");
  leave();
  reader = AT_HOME;
  await says("/settings/configuration", /only what is not the default/);
});

it("who may is asked for nothing", async () => {
  reader = { ...READS, scopes: ["admin"], needs: [] };
  await says("/settings/keys", /New key/);
  expect(asked.some((address) => address.startsWith("/api/v1/keys"))).toBe(true);
});

it("a session that has ended meanwhile is noticed at the first refusal", async () => {
  reader = { ...READS, scopes: ["admin"], needs: [] };
  await says("/settings/keys", /New key/);
  refuses = /^\/api\/v1\/keys/;
  reader = AT_HOME;
  void queries.invalidateQueries({ queryKey: ["/api/v1/keys"] });
  await seen(/Seeing and changing keys needs a key/);
});

it("a section that there is not is told", async () => {
  reader = AT_HOME;
  await says("/settings/bogus", /no section bogus/);
});

it.each([
  ["/usage?by=zzz", /no by=“zzz” here: by day is shown/], ["/usage?t=nonsense", /no t=“nonsense” here: 7d|no t=“nonsense” here: 24h/], ["/runs?v=zzz", /no v=“zzz” here: the list of runs is shown/],
  ["/fleet?view=zzz&q=x", /no view=“zzz” here: the map is shown/],
])("%s is told, not dropped", async (path, text) => {
  reader = AT_HOME;
  await says(path, text);
});

it.each([
  ["/queues/nobody", /No agent nobody ever registered here/], ["/executions/exec_nope", /There is no execution with this id/], ["/runs/run_nope", /There is no run with this id/],
  ["/agents/nobody", /No agent nobody ever registered/], ["/fleet/nodes/nobody", /no node nobody/i], ["/fleet/workers/nobody", /no worker nobody/],
])("%s has a sentence and a command", async (path, text) => {
  reader = AT_HOME;
  unknown = /nobody|_nope/;
  await says(path, text);
  expect(document.querySelector("main code")?.textContent).toMatch(/^muster /);
  expect(document.querySelector("main [role=alert]")).toBeNull();
});
