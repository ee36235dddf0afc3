// The places of the dashboard: in the rail, on the keys `g …`, in the palette.
import type { ReactNode } from "react";

export type Place = { to: string; name: string; key: string; icon: ReactNode; /** In the bar of a phone. */ phone?: boolean; command: string };

export const PLACES: readonly Place[] = [
  { to: "/", name: "Overview", key: "o", phone: true, command: "muster overview", icon: <><circle cx="9" cy="9" r="6.5" /><circle cx="9" cy="9" r="2" fill="currentColor" stroke="none" /></> },
  { to: "/runs", name: "Runs", key: "r", phone: true, command: "muster runs", icon: <path d="M5 3.5 14 9l-9 5.5z" strokeLinejoin="round" /> },
  { to: "/agents", name: "Agents", key: "a", phone: true, command: "muster agents", icon: <path d="M9 2 15 5.5v7L9 16l-6-3.5v-7z" strokeLinejoin="round" /> },
  { to: "/fleet", name: "Fleet", key: "f", phone: true, command: "muster nodes", icon: <path d="M2.5 2.5h5.5v5.5H2.5zM10 2.5h5.5v5.5H10zM2.5 10h5.5v5.5H2.5zM10 10h5.5v5.5H10z" /> },
  { to: "/queues", name: "Queues", key: "q", command: "muster queues", icon: <path d="M2.5 4.5h13M2.5 9h9M2.5 13.5h5" /> },
  { to: "/usage", name: "Usage", key: "u", command: "muster usage", icon: <path d="M3 15V9M9 15V3M15 15V6.5" strokeWidth="2" /> },
  { to: "/health", name: "Health", key: "h", command: "muster doctor", icon: <path d="M1.5 9.5h4L7.5 4l3 10 2-4.5h4" strokeLinejoin="round" /> },
  { to: "/settings", name: "Settings", key: "s", command: "muster keys list", icon: <path d="M2 5h5m4 0h5M2 13h8m4 0h2M9 3v4M12 11v4" /> },
];

export function Icon({ children }: { children: ReactNode }) {
  return (
    <svg width="18" height="18" viewBox="0 0 18 18" fill="none" stroke="currentColor" strokeWidth="1.5" aria-hidden className="shrink-0">{children}</svg>
  );
}

/** Whether a path lies in a place. */
export const isIn = (path: string, to: string) => (to === "/" ? path === "/" : path === to || path.startsWith(`${to}/`) || (to === "/runs" && path.startsWith("/compare")));
