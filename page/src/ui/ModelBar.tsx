import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Session } from "../types";
import { used } from "../words";
import { useApp } from "./shared";

/** Which model answers here, and what the conversation has used. Nothing where no model is configured. */
export function ModelBar(props: { session: Session }): VNode | null {
  const app = useApp();
  const { session } = props;
  const [wanted, setWanted] = useState<string | null>(null);
  const models = app.models.value;
  const { usage } = session;
  if (models.length === 0 && usage.requests === 0) return null;
  const current = session.model !== null && models.includes(session.model) ? session.model : models[0];
  const choose = async (model: string): Promise<void> => {
    setWanted(model);
    await app.change(session, { model });
    setWanted(null);
  };
  return (
    <div class="model-bar">
      {models.length > 1 ? (
        <select aria-label="Model of this conversation" title="From the next message on this model answers" data-testid="model" value={wanted ?? current} disabled={wanted !== null} onChange={(event) => void choose(event.currentTarget.value)}>
          {models.map((model, index) => <option key={model} value={model}>{model}{index === 0 ? " (default)" : ""}</option>)}
        </select>
      ) : <span data-testid="model">{models[0]}</span>}
      {usage.requests > 0 && <span data-testid="conversation-cost" title="What this conversation has used so far">{used(usage).join(" · ")}</span>}
    </div>
  );
}
