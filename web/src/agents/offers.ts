// What an agent offers, with the schemas as it wrote them: read from the text of the plane's
// answer, so that a default of 2^63−1 stays what it is.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { addressOf, send } from "@/api/client";
import type { Problem } from "@/api/problem";
import { type Node, type Tokens, decoded, keyOf, sourceOf, tokensOf } from "@/execution/json/tokens";
import { children } from "./form/text";
import type { Agent } from "./shapes";

export type Offer = {
  id: string;
  type: string;
  description?: string;
  tags: string[];
  /** JSON schemas, as text. */
  input?: string;
  output?: string;
};

export type AgentAnswer = { agent: Agent; offers: Offer[] };

export const agentKey = (id: string) => ["agent", id] as const;

/** One agent with its functions. */
export function useAgent(id: string) {
  const answer = useQuery<string, Problem>({
    queryKey: agentKey(id),
    queryFn: async ({ signal }) => {
      const body = await send(addressOf("/api/v1/nodes/{agent}", { path: { agent: id } }), { headers: { accept: "application/json" }, signal });
      return body.text();
    },
    staleTime: 5_000,
    refetchInterval: 15_000,
  });
  const read = useMemo(() => (answer.data === undefined ? undefined : readAgent(answer.data)), [answer.data]);
  return { ...answer, read };
}

export function readAgent(text: string): AgentAnswer {
  const agent = JSON.parse(text) as Agent;
  const tokens = tokensOf(text);
  const list = member(tokens, 0, "offers");
  const offers = list < 0 ? [] : children(tokens, list).map((at) => offerOf(tokens, at));
  return { agent, offers };
}

function offerOf(tokens: Tokens, at: number): Offer {
  const said = (key: string) => {
    const node = tokens.nodes[member(tokens, at, key)];
    return node?.kind === "string" ? decoded(sourceOf(tokens, node)) : undefined;
  };
  const raw = (key: string) => {
    const node = tokens.nodes[member(tokens, at, key)];
    return node && node.kind !== "null" ? sourceOf(tokens, node) : undefined;
  };
  const tags = member(tokens, at, "tags");
  return {
    id: said("id") ?? "",
    type: said("type") ?? "",
    description: said("description"),
    tags: tags < 0 ? [] : children(tokens, tags).map((tag) => decoded(sourceOf(tokens, tokens.nodes[tag] as Node))),
    input: raw("input_schema"),
    output: raw("output_schema"),
  };
}

const member = (tokens: Tokens, index: number, key: string): number =>
  children(tokens, index).find((child) => keyOf(tokens, tokens.nodes[child] as Node) === key) ?? -1;
