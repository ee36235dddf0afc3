// Where the dashboard starts: display settings before the first paint, then the shell.
import "./look/tokens.css";
import "./look/base.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { createRoot } from "react-dom/client";
import { queries } from "./api/queries";
import { applyDisplay } from "./look/display";
import { Shell } from "./shell/shell";

applyDisplay();

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <QueryClientProvider client={queries}>
      <Shell />
    </QueryClientProvider>,
  );
}
