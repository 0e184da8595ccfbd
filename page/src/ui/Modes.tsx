import type { VNode } from "preact";
import type { Mode } from "../outbox";

const MODES: readonly { mode: Mode; name: string; does: string }[] = [
  { mode: "queue", name: "Queue", does: "waits for its turn" },
  { mode: "steer", name: "Steer", does: "goes to the answer that is being written" },
  { mode: "interrupt", name: "Interrupt", does: "stops what is running and is answered next" },
];

/** What becomes of a message that is sent while an answer is being written. `asks`: the first one answers a question instead. */
export function Modes(props: { mode: Mode; asks: boolean; choose: (mode: Mode) => void }): VNode {
  const first = props.asks ? { name: "Answer", does: "answers the question" } : {};
  const modes = MODES.map((each) => (each.mode === "queue" ? { ...each, ...first } : each));
  return (
    <fieldset class="modes" data-testid="modes">
      <legend class="sr-only">What becomes of your message</legend>
      {modes.map(({ mode, name, does }) => (
        <label key={mode} title={`Your message ${does}`}>
          <input type="radio" name="mode" value={mode} checked={props.mode === mode} data-testid={`mode-${mode}`} onChange={() => props.choose(mode)} />
          <span>{name}</span>
        </label>
      ))}
      <span class="modes-hint" aria-live="polite">Your message {modes.find(({ mode }) => mode === props.mode)!.does}.</span>
    </fieldset>
  );
}
