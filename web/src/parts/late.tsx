// A component whose code is fetched when it is first drawn. In place of React's own `lazy`: that
// holds back what comes within 300 ms of its placeholder until those are over, and our code, which
// lies on the same machine or in the cache, nearly always does.
import { type ComponentType, type ReactNode, useLayoutEffect, useState } from "react";

/** `waiting` stands in its place meanwhile. Code that cannot be had is thrown to the panel around it; its Retry asks for it again. */
export function late<P extends object>(load: () => Promise<{ default: ComponentType<P> }>, waiting: ReactNode): ComponentType<P> {
  let Loaded: ComponentType<P> | undefined;
  return function Late(props: P) {
    const [failed, setFailed] = useState<{ error: unknown }>();
    const [, setThere] = useState(Loaded !== undefined);
    useLayoutEffect(() => {
      if (Loaded) return;
      let shown = true;
      load().then(
        (code) => {
          Loaded = code.default;
          if (shown) setThere(true);
        },
        (error: unknown) => {
          if (shown) setFailed({ error });
        },
      );
      return () => {
        shown = false;
      };
    }, []);
    if (failed) throw failed.error;
    return Loaded ? <Loaded {...props} /> : waiting;
  };
}
