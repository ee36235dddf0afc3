// Gives the page the list of what is in it: every installed package that it depends on, with its
// licence and the text of it, as `virtual:licences`. Read from the lock file and from node_modules
// at build time, so it cannot name what is not there.
import { readFileSync, readdirSync } from "node:fs";
import type { Plugin } from "vite";

type Locked = { version?: string; license?: string; dev?: boolean; optional?: boolean; link?: boolean };
export type Licence = { name: string; version: string; licence: string; text: string };

/** Its base styles are in the page although the rest of it only builds. */
const ALSO = new Set(["tailwindcss"]);
const ID = "virtual:licences";

function textOf(folder: URL): string {
  const file = readdirSync(folder).find((name) => /^(licen[cs]e|copying|notice)/i.test(name));
  return file ? readFileSync(new URL(file, folder), "utf8").trim() : "";
}

export function licences(root: URL): Licence[] {
  const lock = JSON.parse(readFileSync(new URL("package-lock.json", root), "utf8")) as { packages: Record<string, Locked> };
  const found: Licence[] = [];
  for (const [place, locked] of Object.entries(lock.packages)) {
    const name = place.split("node_modules/").at(-1) ?? "";
    if (place === "" || locked.link || (locked.dev && !ALSO.has(name)) || name.startsWith("@types/")) continue;
    const folder = new URL(`${place}/`, root);
    try {
      const told = JSON.parse(readFileSync(new URL("package.json", folder), "utf8")) as { version: string; license?: string };
      found.push({ name, version: told.version, licence: told.license ?? locked.license ?? "not told", text: textOf(folder) });
    } catch (error) {
      // Packages for other systems are not installed, and not in the page.
      if (!locked.optional) throw error;
    }
  }
  return found.sort((a, b) => a.name.localeCompare(b.name));
}

export function licencesPlugin(root: URL): Plugin {
  return {
    name: "licences",
    resolveId: (id) => (id === ID ? `\0${ID}` : undefined),
    load: (id) => (id === `\0${ID}` ? `export default ${JSON.stringify(licences(root))};` : undefined),
  };
}
