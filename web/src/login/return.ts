// Where a sign-in came from and goes back to: only ever below this dashboard. And the one-use code
// that `muster dev` puts into the fragment, which no server and no log sees.

/** A path below `/ui` out of `?next=`; anything that could lead elsewhere becomes the Overview. */
export function nextOf(wanted: string | null): string {
  if (!wanted || /[\u0000-\u001f\\]/.test(wanted)) return "/";
  let url: URL;
  try {
    url = new URL(wanted, "http://plane.invalid/ui/");
  } catch {
    return "/";
  }
  if (url.origin !== "http://plane.invalid") return "/";
  const path = url.pathname.startsWith("/ui/") ? url.pathname.slice(3) : url.pathname;
  if (!wanted.startsWith("/") || path.startsWith("//") || path.startsWith("/login")) return "/";
  return path + url.search;
}

/** The code of `#code=…`, or nothing. */
export function codeOf(hash: string): string | undefined {
  const code = new URLSearchParams(hash.replace(/^#/, "")).get("code");
  return code ? code : undefined;
}
