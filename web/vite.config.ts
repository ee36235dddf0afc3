// How the dashboard is built and tested. Output goes where the caller says (`--outDir`), never
// beside the sources.
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { licencesPlugin } from "./tools/licences";

const plane = process.env.MUSTER_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  base: "/ui/",
  plugins: [react(), tailwind(), licencesPlugin(new URL("./", import.meta.url))],
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  build: {
    target: "es2022",
    // Nothing is inlined: the content security policy allows no data: scripts or styles.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 700,
    sourcemap: false,
  },
  worker: { format: "es" },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/v1", "/openapi.json", "/docs", "/healthz", "/readyz", "/metrics"].map((path) => [
        path,
        { target: plane, ws: true, changeOrigin: false },
      ]),
    ),
  },
  test: { environment: "happy-dom", include: ["src/**/*.test.{ts,tsx}"] },
});
