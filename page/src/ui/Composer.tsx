import { useComputed } from "@preact/signals";
import type { TargetedKeyboardEvent, VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Command, offered, written } from "../commands";
import { liveTurn } from "../log";
import type { Mode } from "../outbox";
import { Field } from "./Field";
import { AttachButton, Files, useAttach } from "./Files";
import { Modes } from "./Modes";
import { ModelBar } from "./ModelBar";
import { SendIcon, StopIcon } from "./icons";
import { Offer, OFFER, optionId } from "./Offer";
import { isTouch, useApp } from "./shared";

export function Composer(): VNode {
  const app = useApp();
  const draft = app.draftName;
  const [text, setText] = useState(() => app.drafts.get(draft));
  const field = useRef<HTMLTextAreaElement>(null);
  const [chosen, setChosen] = useState(0);
  const [closed, setClosed] = useState(false);
  const [mode, setMode] = useState<Mode>("queue");
  const attach = useAttach();
  const files = app.uploads.of(draft);
  const nothing = text.trim() === "" && files.length === 0;
  const ready = !nothing && files.every((file) => file.attached !== null);

  // The field stays while conversations come and go under it, and with it the focus.
  const redrafted = app.redrafted.value;
  useLayoutEffect(() => setText(app.drafts.get(draft)), [draft, redrafted]);
  useEffect(() => {
    setMode("queue");
    if (!isTouch()) field.current?.focus();
  }, [app.openName]);
  useEffect(() => {
    if (redrafted > 0) field.current?.focus();
  }, [redrafted]);

  const turn = useComputed(() => {
    const view = app.conversation.view.value;
    const open = view && liveTurn(view.session);
    if (!view || !open) return null;
    return { asks: view.session.questions.filter((question) => question.kind !== "approval").length, stopping: view.stopping === open.id || app.conversation.stopAsked.value === open.id };
  });
  const session = app.route.value.session === null ? null : (app.conversation.view.value?.session ?? null);
  const type = (value: string): void => {
    setText(value);
    app.drafts.set(draft, value);
    setClosed(false);
    setChosen(0);
  };

  const commands = closed ? [] : offered(text);
  const at = Math.min(chosen, commands.length - 1);
  const take = (command: Command): void => {
    type(written(command));
    setClosed(true);
  };
  const pressed = (event: TargetedKeyboardEvent<HTMLTextAreaElement>): boolean => {
    const command = commands[at];
    if (command === undefined || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return false;
    switch (event.key) {
      case "ArrowDown": setChosen((at + 1) % commands.length); return true;
      case "ArrowUp": setChosen((at + commands.length - 1) % commands.length); return true;
      case "Escape": setClosed(true); return true;
      case "Tab": take(command); return true;
      // What is typed in full is sent like any other words.
      case "Enter": if (text === written(command)) return false; take(command); return true;
      default: return false;
    }
  };
  const send = (): void => {
    if (!ready) return;
    app.send(text, turn.value && mode);
    type("");
    setMode("queue");
    field.current?.focus();
  };

  const placeholder = turn.value !== null && mode !== "queue" ? (mode === "steer" ? "Say what to change" : "Say what to do instead") : turn.value === null ? "Write a message" : turn.value.asks > 1 ? "Or answer the first question here" : turn.value.asks > 0 ? "Or answer here" : "Queue another message";
  return (
    <form
      class="composer" onSubmit={(event) => { event.preventDefault(); send(); }} onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => { event.preventDefault(); attach(event.dataTransfer?.files); }} onPaste={(event) => { if (attach(event.clipboardData?.files)) event.preventDefault(); }}
    >
      {commands.length > 0 && <Offer commands={commands} chosen={at} choose={setChosen} take={take} />}
      {turn.value && <Modes mode={mode} asks={turn.value.asks > 0} choose={setMode} />}
      <Files />
      <div class="composer-box">
        <AttachButton />
        <Field
          id="composer" field={field} value={text} onInput={type} onSubmit={send} onKey={pressed} onBlur={() => setClosed(true)} label="Message"
          placeholder={placeholder} testid="composer" offers={commands[at] ? { list: OFFER, chosen: optionId(commands[at]) } : null}
        />
        <div class="composer-buttons">
          {turn.value && (
            <button
              type="button" class="stop" data-testid="stop" disabled={turn.value.stopping} onClick={() => void app.conversation.stop()}
              aria-label={turn.value.stopping ? "Stopping" : "Stop the answer"} title="Stop (Escape)"
            >
              <StopIcon /><span>{turn.value.stopping ? "Stopping…" : "Stop"}</span>
            </button>
          )}
          <button type="submit" class="send" data-testid="send" disabled={!ready} aria-label="Send" title="Send (Enter)"><SendIcon /></button>
        </div>
      </div>
      {session && <ModelBar session={session} />}
      <p class="composer-hint"><kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> starts a new line, <kbd>/</kbd> lists commands{turn.value && !turn.value.asks ? <>, <kbd>Esc</kbd> stops</> : null}</p>
    </form>
  );
}
