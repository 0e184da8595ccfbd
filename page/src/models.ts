/** What is known of the models of a turn: their responses, what these used, and the requests that failed. Pure; counts as the server does. */

import type { ModelFailure, ModelResponse, Thought, Turn, Usage } from "./types";

/** The newest ones, as many as the server shows. */
const MOST_RESPONSES = 50;
const MOST_FAILURES = 20;

export const NOTHING_USED: Usage = { requests: 0, input: 0, output: 0, cached: 0, stored: 0, thought: 0, cost: 0, unpriced: 0 };

type Data = Record<string, unknown>;

const count = (value: unknown): number => (typeof value === "number" ? value : 0);
const words = (value: unknown): string => (typeof value === "string" ? value : "");

/** With one request more. What is copied from another conversation was counted there. */
export function using(usage: Usage, data: Data): Usage {
  if (data.copied === true) return usage;
  const tokens = (data.usage ?? {}) as Data;
  const requests = usage.requests + 1;
  const unpriced = usage.unpriced + (typeof data.cost === "number" ? 0 : 1);
  const sum = (name: "input" | "output" | "cached" | "stored" | "thought") => usage[name] + count(tokens[name]);
  return {
    requests, input: sum("input"), output: sum("output"), cached: sum("cached"), stored: sum("stored"), thought: sum("thought"),
    cost: unpriced === requests ? null : (usage.cost ?? 0) + count(data.cost), unpriced,
  };
}

/** A step of a turn thinks aloud. What comes after its response is known already. */
export function thinking(turn: Turn, step: number, text: string): Partial<Turn> {
  if (turn.state === "ended" || turn.responses?.some((response) => response.step === step)) return {};
  const open = turn.thoughts?.find((thought) => thought.step === step && !thought.kept)?.text ?? "";
  return withThought(turn, { step, text: open + text, kept: false }, (thought) => thought.step === step && !thought.kept);
}

/** What a step thought is not kept before it is on record: the request failed, or the attempt is over. */
export function endThinking(turn: Turn | undefined): Partial<Turn> {
  return among(turn?.thoughts?.filter((thought) => thought.kept));
}

/** What an agent that is another program thought aloud is on record; its one step is 0. */
export function recordThoughts(turn: Turn, text: string): Partial<Turn> {
  return text === "" ? {} : withThought(turn, { step: 0, text, kept: true }, (thought) => thought.step === 0 && !thought.kept);
}

function withThought(turn: Turn | undefined, added: Thought, replaces: (thought: Thought) => boolean): Partial<Turn> {
  const others = (turn?.thoughts ?? []).filter((thought) => !replaces(thought));
  return among(added.text === "" ? others : [...others, added].sort((a, b) => a.step - b.step).slice(-MOST_RESPONSES));
}

const among = (thoughts: Thought[] | undefined): Partial<Turn> => ({ thoughts: thoughts?.length ? thoughts : undefined });

/** What a response adds to its turn. */
export function responding(turn: Turn | undefined, data: Data): Partial<Turn> {
  const tokens = (data.usage ?? {}) as Data;
  const named = words(data.provider) !== "" && words(data.model) !== "" ? `${words(data.provider)}:${words(data.model)}` : words(data.model);
  const response: ModelResponse = {
    step: count(data.step), model: named, finish: words(data.finish), input: count(tokens.input), output: count(tokens.output),
    cached: count(tokens.cached), stored: count(tokens.stored), thought: count(tokens.thought), cost: typeof data.cost === "number" ? data.cost : null,
  };
  const others = (turn?.responses ?? []).filter((other) => other.step !== response.step);
  const model = named || turn?.model;
  return {
    ...withThought(turn, { step: response.step, text: words(data.thoughts), kept: true }, (thought) => thought.step === response.step),
    steps: Math.max(turn?.steps ?? 0, response.step + 1), responses: [...others, response].slice(-MOST_RESPONSES),
    ...(data.copied === true ? {} : { usage: using(turn?.usage ?? NOTHING_USED, data) }), ...(model !== undefined && { model }),
  };
}

/** What a summary adds to its turn, if a model was asked for it. */
export function summarising(usage: Usage | undefined, data: Data): Usage | undefined {
  return words(data.model) === "" ? usage : using(usage ?? NOTHING_USED, data);
}

/** Why the agent may not remember everything, in the server's words. */
export function compacted(data: Data): string {
  const long = "has become too long for the model. It";
  if (typeof data.problem === "string") return `The conversation ${long} no longer sees the earlier messages: ${data.problem}`;
  if (words(data.summary) !== "") return `The conversation ${long} sees a summary of the earlier messages from here on.`;
  const results = Array.isArray(data.trimmed) ? data.trimmed.length : 0;
  return `This turn ${long} sees only the beginning and the end of ${results === 1 ? "a long result" : `${results} long results`}.`;
}

export function failing(turn: Turn | undefined, data: Data): { failures: ModelFailure[] } {
  const failure: ModelFailure = {
    at: words(data.at), step: count(data.step), model: words(data.model), tries: count(data.tries), error: words(data.error), why: words(data.why),
    retry_at: typeof data.retry_at === "string" ? data.retry_at : null,
  };
  return { failures: [...(turn?.failures ?? []), failure].slice(-MOST_FAILURES) };
}

/** The failure behind which nothing has come yet, as far as the record tells. */
export function lastFailure(turn: Turn | null): ModelFailure | null {
  const last = turn?.state === "running" ? turn.failures?.[turn.failures.length - 1] : undefined;
  return last !== undefined && last.step >= turn!.steps ? last : null;
}
