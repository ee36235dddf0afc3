// Writes the types of the plane's answers from openapi.json, into node_modules: they are derived,
// never edited and never committed.
import { mkdir, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const document = new URL("../../openapi.json", import.meta.url);
const folder = new URL("../node_modules/.muster/", import.meta.url);
const types = await openapiTS(document, { emptyObjectsUnknown: true });
await mkdir(folder, { recursive: true });
await writeFile(new URL("openapi.d.ts", folder), astToString(types));
