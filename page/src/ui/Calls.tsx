/** The calls of an answer that follow one another: one box, a line each. */

import type { VNode } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import type { ToolCall } from "../types";
import { callSign, duration, visible, visibleCode } from "../words";
import { Attachments } from "./Attachments";
import { BellIcon, ChevronIcon, FileIcon, SearchIcon, StateSign, TerminalIcon, ToolIcon } from "./icons";
import { memo, useNow } from "./shared";

/** More than this of one output is not drawn: nobody reads it here, and it would slow the page. */
const SHOWN_OUTPUT = 100_000;

const INTERRUPTED = /^[^\n]* while [^\n]* was running\. It is not known whether it finished, and it was not run again\.$/s;

/** The one argument that says what the call does, where there is one. */
export function gist(args: unknown): string {
  if (typeof args === "string") return args;
  if (typeof args !== "object" || args === null) return "";
  const named = args as Record<string, unknown>;
  for (const name of ["command", "question", "query", "path", "url", "text"]) if (typeof named[name] === "string") return named[name] as string;
  const values = Object.values(named);
  return values.length === 1 && typeof values[0] === "string" ? values[0] : values.length > 0 ? JSON.stringify(args) : "";
}

function isMoreThanGist(args: unknown): boolean {
  return typeof args === "object" && args !== null && Object.keys(args).length > 1;
}

function inWords(result: unknown): string {
  if (result === null || result === undefined) return "";
  return typeof result === "string" ? result : JSON.stringify(result, null, 2);
}

/** `own`: the digests of what the answer itself shows, which need not be shown here as well. */
export function Calls(props: { calls: ToolCall[]; running: boolean; own: string }): VNode {
  return (
    <div class="work" role="group" aria-label={t().calls.box(props.calls.length)}>
      {props.calls.map((call) => <Call key={call.call_id} call={call} running={props.running} own={props.own} />)}
    </div>
  );
}

function icon(name: string): VNode {
  if (/terminal|shell|bash|exec|process|run/.test(name)) return <TerminalIcon />;
  if (/file|read|write|edit|patch/.test(name)) return <FileIcon />;
  if (/fetch|search|web|http|browse/.test(name)) return <SearchIcon />;
  if (/notify|send|mail|post/.test(name)) return <BellIcon />;
  return <ToolIcon />;
}

const Call = memo<{ call: ToolCall; running: boolean; own: string }>(({ call, running, own }) => {
  // A call that went well is folded when the conversation is opened; one that finishes before the reader's eyes stays as it is.
  const [open, setOpen] = useState(call.outcome !== "done");
  const body = useId();
  const summary = visible(gist(call.arguments));
  // What the agent is told about an unknown outcome is said to people in the note.
  const result = call.outcome === "unknown" && INTERRUPTED.test(inWords(call.result)) ? "" : inWords(call.result);
  // A result mostly repeats what was printed: it then stands for both.
  const output = call.output && !result.includes(call.output.trim()) ? call.output : "";
  const state = callSign(call, running);
  const bare = call.outcome === "unknown" && output === "" && result === "" && !call.late && summary.length <= 60 && !isMoreThanGist(call.arguments);
  const words = t().calls;
  return (
    <section class="call" data-testid="tool-card" data-outcome={call.outcome ?? "running"} aria-label={words.label(call.name, state.text)}>
      <button type="button" class="call-head" aria-expanded={open} aria-controls={body} onClick={() => setOpen(!open)}>
        {icon(call.name)}
        <span class="name">{visible(call.name)}</span>
        <span class="arg">{summary}</span>
        <Took call={call} running={running} />
        <StateSign sign={state} />
        <ChevronIcon />
      </button>
      {call.outcome === "unknown" && <p class="call-note">{words.unknown}</p>}
      {call.recovered && !call.late && <p class="call-note">{words.recovered}</p>}
      {call.late && <p class="call-note" data-testid="late-result">{words.late[call.late.outcome] ?? words.late.other}</p>}
      {call.result_parts && <Attachments parts={call.result_parts.filter((part) => !("digest" in part) || !own.includes(part.digest))} />}
      <div id={body} class="call-body" hidden={!open || bare}>
        {summary.length > 60 && !isMoreThanGist(call.arguments) && <pre class="arguments" tabIndex={0}>{summary}</pre>}
        {isMoreThanGist(call.arguments) && <pre class="arguments" tabIndex={0}>{visible(JSON.stringify(call.arguments, null, 2))}</pre>}
        {output !== "" && <Output text={output} follow={call.outcome === null} />}
        {output !== "" && result !== "" && <p class="call-label">{words.result}</p>}
        {result !== "" && <Output text={result} follow={false} />}
        {call.late && call.late.result !== "" && <Output text={call.late.result} follow={false} />}
        {output === "" && result === "" && call.outcome !== "unknown" && <p class="call-nothing">{call.outcome === null && running ? words.noOutputYet : words.noOutput}</p>}
      </div>
    </section>
  );
});

/** How long it took, or takes. Nothing where the times are not known. */
function Took(props: { call: ToolCall; running: boolean }): VNode | null {
  const { started_at, finished_at } = props.call;
  const live = props.call.outcome === null && props.running;
  const now = useNow(live && started_at !== undefined);
  if (!started_at || (!finished_at && !live)) return null;
  const ms = (finished_at ? Date.parse(finished_at) : now) - Date.parse(started_at);
  return <span class="took">{duration(Math.max(0, live ? Math.floor(ms / 1000) * 1000 : ms))}</span>;
}

function Output(props: { text: string; follow: boolean }): VNode {
  const box = useRef<HTMLPreElement>(null);
  const at_end = useRef(true);
  useLayoutEffect(() => {
    if (props.follow && at_end.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [props.text]);
  const hidden = props.text.length - SHOWN_OUTPUT;
  const scrolled = (): void => {
    if (box.current === null) return;
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    at_end.current = scrollHeight - scrollTop - clientHeight < 24;
  };
  return (
    <pre class="output" ref={box} tabIndex={0} dir="ltr" onScroll={scrolled}>
      {hidden > 0 && <span class="dim">{t().calls.hidden(hidden)}</span>}
      {visibleCode(hidden > 0 ? props.text.slice(-SHOWN_OUTPUT) : props.text)}
    </pre>
  );
}
