/** How far messages have come on their way to a chat. Pure; counts as the server does. */

import type { Delivery } from "./types";

type Data = Record<string, unknown>;

const words = (value: unknown): string | null => (typeof value === "string" ? value : null);
const count = (value: unknown): number => (typeof value === "number" ? value : 0);

/** Of a message that is to be sent to a chat. */
export function owed(data: Data): { delivery?: Delivery } {
  const delivery_id = words(data.delivery_id);
  return delivery_id === null ? {} : { delivery: { delivery_id, state: "pending", states: ["pending"], tries: 0, retry_at: null, error: null } };
}

/** It is sent in so many messages. */
export function planned(delivery: Delivery, data: Data): Delivery {
  const more = Math.max(0, count(data.pieces) - delivery.states.length);
  return withStates(delivery, [...delivery.states, ...Array<string>(more).fill("pending")]);
}

export function delivered(delivery: Delivery, data: Data): Delivery {
  const part = count(data.part);
  if (part >= delivery.states.length) return delivery;
  const states = delivery.states.map((state, index) => (index === part ? (words(data.state) ?? state) : state));
  return { ...withStates(delivery, states), tries: count(data.tries), retry_at: words(data.retry_at), error: words(data.error) };
}

function withStates(delivery: Delivery, states: string[]): Delivery {
  return { ...delivery, states, state: overall(states) };
}

/** It is there when all of its messages are, and what went wrong with one counts. */
function overall(states: string[]): string {
  for (const state of ["dead", "unknown", "repeating", "sending"]) if (states.includes(state)) return state;
  return states.every((state) => state === "sent") ? "sent" : "pending";
}
