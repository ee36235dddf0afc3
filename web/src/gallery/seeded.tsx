// Shows parts as they are with certain answers of the plane: a cache of its own that holds them and
// asks for nothing. For the gallery and for tests.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

export type Answers = readonly (readonly [key: readonly unknown[], answer: unknown])[];

/** A cache with these answers in it; nothing in it grows old. */
export function seeded(answers: Answers): QueryClient {
  const client = new QueryClient({
    defaultOptions: { queries: { retry: false, staleTime: Number.POSITIVE_INFINITY, refetchOnMount: false, refetchOnWindowFocus: false, refetchOnReconnect: false } },
  });
  for (const [key, answer] of answers) client.setQueryData(key, answer);
  return client;
}

export function Seeded({ answers, children }: { answers: Answers; children: ReactNode }) {
  const [client] = useState(() => seeded(answers));
  return <QueryClientProvider client={client}>{children}</QueryClientProvider>;
}
