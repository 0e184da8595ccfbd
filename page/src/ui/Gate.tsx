/** The foot of the list: how the gateway is, and the way to its operations. */

import type { VNode } from "preact";
import { t } from "../i18n";
import type { Sign } from "../words";
import { ShapeIcon } from "./icons";
import { plainClick, useApp } from "./shared";

/** The gateway's state as a sign. */
export function useGate(): Sign {
  const app = useApp();
  const words = t().gate.states;
  const status = app.safeMode.status.value;
  const word = (name: string): string => words[name] ?? words.unknown!;
  if (app.connection.away.value) return { shape: "unknown", tone: "amber", text: word("away") };
  if (status === null) return { shape: "next", tone: "", text: word("unknown") };
  if (status.degraded) return { shape: "failed", tone: "red", text: word("degraded") };
  if (status.safe_mode) return { shape: "waiting", tone: "amber", text: word("safe") };
  if (status.gateway_state === "running") return { shape: "running", tone: "kelp", text: word("running") };
  return { shape: status.gateway_state === "paused" ? "suspended" : "hand-over", tone: "amber", text: word(status.gateway_state) };
}

export function Gate(): VNode {
  const app = useApp();
  const sign = useGate();
  const status = app.safeMode.status.value;
  const turns = status === null ? 0 : status.running_turns;
  return (
    <a class="gate" href="/operations" data-testid="gate" onClick={plainClick(() => app.goOperations())} aria-current={app.route.value.operations ? "page" : undefined}>
      <span class={`st ${sign.tone}`}><ShapeIcon shape={sign.shape} /></span>
      <span class="grow"><b>{sign.text}</b>{turns > 0 && !app.connection.away.value && <> · {t().gate.turns(turns)}</>}</span>
      <span class="num">{status?.version}</span><span class="sr-only">{t().gate.open}</span>
    </a>
  );
}
