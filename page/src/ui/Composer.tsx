import { useComputed } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { openTurn } from "../log";
import { Field } from "./Field";
import { SendIcon, StopIcon } from "./icons";
import { isTouch, useApp } from "./shared";

export function Composer(): VNode {
  const app = useApp();
  const draft = app.draftName;
  const [text, setText] = useState(() => app.drafts.get(draft));
  const field = useRef<HTMLTextAreaElement>(null);

  // The field stays while conversations come and go under it, and with it the focus.
  useLayoutEffect(() => setText(app.drafts.get(draft)), [draft]);
  useEffect(() => {
    if (!isTouch()) field.current?.focus();
  }, [app.openName]);

  const turn = useComputed(() => {
    const view = app.conversation.view.value;
    const open = view && openTurn(view.session);
    if (!view || !open) return null;
    return { asks: view.session.question !== null, stopping: view.stopping === open.id || app.conversation.stopAsked.value === open.id };
  });
  const type = (value: string): void => {
    setText(value);
    app.drafts.set(draft, value);
  };
  const send = (): void => {
    if (text.trim() === "") return;
    app.send(text);
    type("");
    field.current?.focus();
  };

  const placeholder = turn.value === null ? "Write a message" : turn.value.asks ? "Or answer here" : "Write ahead";
  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); send(); }}>
      <div class="composer-box">
        <Field id="composer" field={field} value={text} onInput={type} onSubmit={send} label="Message" placeholder={placeholder} testid="composer" />
        <div class="composer-buttons">
          {turn.value && (
            <button
              type="button" class="stop" data-testid="stop" disabled={turn.value.stopping} onClick={() => void app.conversation.stop()}
              aria-label={turn.value.stopping ? "Stopping" : "Stop the answer"} title="Stop (Escape)"
            >
              <StopIcon /><span>{turn.value.stopping ? "Stopping…" : "Stop"}</span>
            </button>
          )}
          <button type="submit" class="send" data-testid="send" disabled={text.trim() === ""} aria-label="Send" title="Send (Enter)"><SendIcon /></button>
        </div>
      </div>
      <p class="composer-hint"><kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> begins a new line{turn.value && !turn.value.asks ? <>, <kbd>Esc</kbd> stops</> : null}</p>
    </form>
  );
}
