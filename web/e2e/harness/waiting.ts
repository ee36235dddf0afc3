// Waiting with a deadline: until something is so, never for a fixed time.
import { createServer } from "node:net";

/** Asks again until the answer is truthy; fails with what was awaited. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  within = 30_000,
): Promise<T> {
  const deadline = performance.now() + within;
  let last: unknown;
  while (performance.now() < deadline) {
    try {
      const found = await look();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`not so within ${within} ms: ${what}${last ? ` (${String(last)})` : ""}`);
}

/** A loopback port that is free now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
