// The official TypeScript client, driven by lines of JSON on stdin: each command has an `id` and
// is answered by one line with that id, after a line for each progress notification. Ends with
// stdin. Knows nothing of what is tested.

import { createInterface } from "node:readline";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, key] = process.argv.slice(2);
const headers = key ? { "X-API-Key": key } : {};
const client = new Client({ name: "muster-peer", version: "1.0.0" });
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const commands = {
  connect: async () => {
    await client.connect(transport);
    return {
      version: transport.protocolVersion,
      server: client.getServerVersion(),
      instructions: client.getInstructions(),
      session: transport.sessionId ?? null,
    };
  },
  tools: async () => (await client.listTools()).tools,
  call: async ({ id, name, arguments: given, timeout, progress }) => {
    const options = { timeout: (timeout ?? 60) * 1000 };
    if (progress) {
      options.onprogress = (told) => say({ id, progress: told });
    }
    return await client.callTool({ name, arguments: given }, undefined, options);
  },
  close: async () => {
    await client.close();
    return null;
  },
};

async function run(line) {
  const command = JSON.parse(line);
  try {
    say({ id: command.id, answer: await commands[command.do](command) });
  } catch (error) {
    say({ id: command.id, error: { code: error.code ?? null, message: String(error.message) } });
  }
}

const lines = createInterface({ input: process.stdin });
lines.on("line", run);
lines.on("close", () => process.exit(0));
