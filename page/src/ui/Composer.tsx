import type { TargetedKeyboardEvent, VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { offered, written } from "../commands";
import { t } from "../i18n";
import { liveTurn, type Overview } from "../log";
import type { Mode } from "../outbox";
import type { Command } from "../types";
import { platformName, platformOf, used } from "../words";
import { Field } from "./Field";
import { AttachButton, Files, useAttach } from "./Files";
import { SendIcon, StopIcon } from "./icons";
import { Offer, OFFER, optionId } from "./Offer";
import { isTouch, useApp, useOpen, useSame } from "./shared";

export function Composer(): VNode {
  const app = useApp();
  const words = t().composer;
  const draft = app.draftName;
  const [text, setText] = useState(() => app.drafts.get(draft));
  const field = useRef<HTMLTextAreaElement>(null);
  const [chosen, setChosen] = useState(0);
  const [closed, setClosed] = useState(false);
  const [mode, setMode] = useState<Mode>("queue");
  const [over, setOver] = useState(false);
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

  const turn = useSame(() => {
    const view = app.conversation.view.value;
    const open = view && liveTurn(view.session);
    if (!view || !open) return null;
    return { asks: view.session.questions.filter((question) => question.kind !== "approval").length, stopping: view.stopping === open.id || app.conversation.stopAsked.value === open.id };
  });
  const session = useOpen();
  const type = (value: string): void => {
    setText(value);
    app.type(value);
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
    app.sendTyped(text, turn.value && mode);
    type("");
    setMode("queue");
    field.current?.focus();
  };
  const { value: busy } = turn;
  const placeholder = busy === null ? words.placeholder : mode === "steer" ? words.steer : mode === "interrupt" ? words.interrupt : busy.asks > 1 ? words.orAnswerFirst : busy.asks > 0 ? words.orAnswer : words.queue;
  return (
    <form
      class="composer" onSubmit={(event) => { event.preventDefault(); send(); }}
      onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
      onDrop={(event) => { event.preventDefault(); setOver(false); attach(event.dataTransfer?.files); }} onPaste={(event) => { if (attach(event.clipboardData?.files)) event.preventDefault(); }}
    >
      {commands.length > 0 && <Offer commands={commands} chosen={at} choose={setChosen} take={take} />}
      <div class={over ? "box over" : "box"}>
        <Files />
        <Field
          id="composer" field={field} value={text} onInput={type} onSubmit={send} onKey={pressed} onBlur={() => setClosed(true)} label={words.label}
          placeholder={placeholder} testid="composer" offers={commands[at] ? { list: OFFER, chosen: optionId(commands[at]) } : null}
        />
        <div class="composer-tools">
          <AttachButton />
          {busy && <Modes mode={mode} asks={busy.asks > 0} choose={setMode} />}
          {session && <ModelChoice session={session} />}
          <span class="grow" />
          {busy && (
            <button
              type="button" class="b stop" data-testid="stop" disabled={busy.stopping} onClick={() => void app.conversation.stop()}
              aria-label={busy.stopping ? words.stoppingLabel : words.stopLabel} title={words.stopLabel}
            >
              <StopIcon /><span>{busy.stopping ? words.stopping : words.stop}</span>
            </button>
          )}
          <button type="submit" class="send" data-testid="send" disabled={!ready} aria-label={words.send} title={words.send}><SendIcon /></button>
        </div>
      </div>
      <Hint session={session} mode={busy ? mode : null} asks={(busy?.asks ?? 0) > 0} />
    </form>
  );
}

/** What the next message does, where that is not plain; else how to write one. And what the conversation has used. */
function Hint(props: { session: Overview | null; mode: Mode | null; asks: boolean }): VNode {
  const words = t().composer;
  const { session } = props;
  const platform = session ? platformOf(session.session_key) : "web";
  const usage = session && session.usage.requests > 0 ? <span data-testid="conversation-cost" title={words.usedSoFar}>{used(session.usage).join(" · ")}</span> : null;
  return (
    <p class="hint">
      {props.mode !== null ? <span data-testid="modes-hint" aria-live="polite">{words.does(doing(props.mode, props.asks))}</span> : <span>{platform !== "web" && `${words.goesTo(platformName(platform))} `}{usage === null ? words.hint : null}</span>}
      {usage !== null && <> {usage}</>}
    </p>
  );
}

function doing(mode: Mode, asks: boolean): string {
  const words = t().composer;
  if (mode === "queue") return asks ? words.doesAnswer : words.doesQueue;
  return mode === "steer" ? words.doesSteer : words.doesInterrupt;
}

/** What becomes of a message that is sent while an answer is being written. `asks`: the first one answers a question instead. */
function Modes(props: { mode: Mode; asks: boolean; choose: (mode: Mode) => void }): VNode {
  const words = t().composer;
  const names: [Mode, string][] = [["queue", props.asks ? words.modeAnswer : words.modeQueue], ["steer", words.modeSteer], ["interrupt", words.modeInterrupt]];
  return (
    <fieldset class="seg" data-testid="modes">
      <legend class="sr-only">{words.modes}</legend>
      {names.map(([mode, name]) => (
        <label key={mode} title={words.does(doing(mode, props.asks))}>
          <input type="radio" name="mode" value={mode} checked={props.mode === mode} data-testid={`mode-${mode}`} onChange={() => props.choose(mode)} />
          <span>{name}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** Which model answers here. Nothing where no model is configured. */
function ModelChoice(props: { session: Overview }): VNode | null {
  const app = useApp();
  const { session } = props;
  const [wanted, setWanted] = useState<string | null>(null);
  const words = t().composer;
  const models = app.models.value;
  if (models.length === 0) return null;
  const current = session.model !== null && models.includes(session.model) ? session.model : models[0];
  const choose = async (model: string): Promise<void> => {
    setWanted(model);
    await app.change(session, { model });
    setWanted(null);
  };
  if (models.length === 1) return <span class="model" data-testid="model">{models[0]}</span>;
  return (
    <select aria-label={words.model} title={words.modelHint} data-testid="model" value={wanted ?? current} disabled={wanted !== null} onChange={(event) => void choose(event.currentTarget.value)}>
      {models.map((model, index) => <option key={model} value={model}>{index === 0 ? words.default(model) : model}</option>)}
    </select>
  );
}
