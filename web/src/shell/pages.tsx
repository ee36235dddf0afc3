// Which path shows which page. Pages load when somebody goes there.
import type { ComponentType } from "react";
import { late } from "@/parts/late";
import { Skeleton } from "@/parts/says";

type Page = ComponentType<Record<string, string>>;
const page = (load: () => Promise<unknown>): Page => late(load as () => Promise<{ default: Page }>, <Skeleton what="the page" />);

/** In order; the first that matches is shown. Values of the path are the page's properties. */
export const PAGES: [pattern: string, page: Page][] = [
  ["/", page(() => import("@/overview/page"))],
  ["/runs", page(() => import("@/runs/page"))],
  ["/runs/:run", page(() => import("@/runs/run"))],
  ["/executions/:id", page(() => import("@/execution/page"))],
  ["/compare", page(() => import("@/runs/compare"))],
  ["/agents", page(() => import("@/agents/page"))],
  ["/agents/:agent", page(() => import("@/agents/agent"))],
  ["/agents/:agent/call/:fn", page(() => import("@/agents/call"))],
  ["/fleet", page(() => import("@/fleet/page"))],
  ["/fleet/nodes/:node", page(() => import("@/fleet/node"))],
  ["/fleet/workers/:worker", page(() => import("@/fleet/worker"))],
  ["/fleet/workers/:worker/terminal", page(() => import("@/fleet/worker"))],
  ["/queues", page(() => import("@/queues/page"))],
  ["/queues/:agent", page(() => import("@/queues/page"))],
  ["/usage", page(() => import("@/usage/page"))],
  ["/health", page(() => import("@/health/page"))],
  ["/settings", page(() => import("@/settings/page"))],
  ["/settings/:section", page(() => import("@/settings/page"))],
  ["/login", page(() => import("@/login/page"))],
  ["/gallery", page(() => import("@/gallery/page"))],
];
