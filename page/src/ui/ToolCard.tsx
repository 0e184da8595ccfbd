import type { VNode } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ToolCall } from "../types";
import { toolOutcome } from "../words";
import { Attachments } from "./Attachments";
import { ChevronIcon, ToolIcon } from "./icons";
import { memo } from "./shared";

/** More than this of one output is not drawn: nobody reads it here, and it would slow the page. */
const SHOWN_OUTPUT = 100_000;

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
export const ToolCard = memo<{ call: ToolCall; running: boolean; own: string }>(({ call, running, own }) => {
  // A call that went well is folded when the conversation is opened; one that finishes before the reader's eyes stays as it is.
  const [open, setOpen] = useState(call.outcome !== "done");
  const body = useId();
  const summary = gist(call.arguments);
  const result = inWords(call.result);
  // A result mostly repeats what was printed: it then stands for both.
  const output = call.output && !result.includes(call.output.trim()) ? call.output : "";
  const outcome = toolOutcome(call, running);
  return (
    <section class="tool" data-testid="tool-card" data-outcome={call.outcome ?? "running"} aria-label={`Tool ${call.name}, ${outcome}`}>
      <button type="button" class="tool-head" aria-expanded={open} aria-controls={body} onClick={() => setOpen(!open)}>
        <span class="tool-icon"><ToolIcon /></span>
        <span class="tool-name">{call.name}</span>
        <span class="tool-gist">{summary}</span>
        <span class="tool-outcome">{outcome}</span>
        <span class="tool-fold"><ChevronIcon /></span>
      </button>
      {call.result_parts && <Attachments parts={call.result_parts.filter((part) => !("digest" in part) || !own.includes(part.digest))} />}
      <div id={body} class="tool-body" hidden={!open}>
        {summary.length > 60 && !isMoreThanGist(call.arguments) && <pre class="tool-arguments" tabIndex={0}>{summary}</pre>}
        {isMoreThanGist(call.arguments) && <pre class="tool-arguments" tabIndex={0}>{JSON.stringify(call.arguments, null, 2)}</pre>}
        {output !== "" && <Output text={output} follow={call.outcome === null} />}
        {output !== "" && result !== "" && <p class="tool-label">Result</p>}
        {result !== "" && <Output text={result} follow={false} />}
        {output === "" && result === "" && <p class="tool-nothing">{call.outcome === null && running ? "No output yet." : "No output."}</p>}
        {call.outcome === "unknown" && result === "" && <p class="tool-note">It is unknown whether this took effect. It was not run again automatically.</p>}
      </div>
    </section>
  );
});

function Output(props: { text: string; follow: boolean }): VNode {
  const box = useRef<HTMLPreElement>(null);
  const at_end = useRef(true);
  useLayoutEffect(() => {
    if (props.follow && at_end.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [props.text]);
  const hidden = props.text.length - SHOWN_OUTPUT;
  const scrolled = (): void => {
    const { scrollTop, scrollHeight, clientHeight } = box.current!;
    at_end.current = scrollHeight - scrollTop - clientHeight < 24;
  };
  return (
    <pre class="tool-output" ref={box} tabIndex={0} onScroll={scrolled}>
      {hidden > 0 && <span class="tool-cut">{`… ${hidden.toLocaleString()} earlier characters are not shown\n`}</span>}
      {hidden > 0 ? props.text.slice(-SHOWN_OUTPUT) : props.text}
    </pre>
  );
}
