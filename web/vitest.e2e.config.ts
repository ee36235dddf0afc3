// The tests in a real browser against the real binary. Each file starts what it needs and ends it.
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  test: {
    environment: "node",
    include: ["e2e/**/*.e2e.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 90_000,
    hookTimeout: 180_000,
    sequence: { concurrent: false },
  },
});
