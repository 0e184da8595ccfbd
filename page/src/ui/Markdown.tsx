/** Draws what `markdown.ts` has read. Blocks that did not change are not drawn again: of a growing answer that is all but the last. */

import type { VNode } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { type Block, blocks, type Inline, inline, Reading } from "../markdown";
import { t } from "../i18n";
import { Copy, memo } from "./shared";

/** Quotes and lists deeper than this are shown as the text they are. */
const DEEPEST = 6;

export function Markdown(props: { text: string; writing?: boolean }): VNode {
  const reading = useRef<Reading | null>(null);
  const found = (reading.current ??= new Reading()).read(props.text);
  return (
    <div class={props.writing ? "prose writing" : "prose"}>
      <Blocks found={found} depth={0} />
    </div>
  );
}

function Blocks(props: { found: Block[]; depth: number }): VNode {
  return <>{props.found.map((block, index) => <BlockView key={index} block={block} depth={props.depth} />)}</>;
}

function sameBlock(a: Block, b: Block): boolean {
  if (a === b) return true;
  if (a.kind !== b.kind) return false;
  if (a.kind === "list" && b.kind === "list") return a.ordered === b.ordered && a.start === b.start && sameStrings(a.items, b.items);
  if (a.kind === "table" && b.kind === "table") {
    return sameStrings(a.head, b.head) && a.rows.length === b.rows.length && a.rows.every((row, index) => sameStrings(row, b.rows[index]!));
  }
  if (a.kind === "code" && b.kind === "code") return a.text === b.text && a.language === b.language;
  if (a.kind === "heading" && b.kind === "heading") return a.text === b.text && a.level === b.level;
  return !("text" in a && "text" in b) || a.text === b.text;
}

function sameStrings(a: string[], b: string[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index]);
}

const BlockView = memo<{ block: Block; depth: number }>(
  ({ block, depth }) => {
    switch (block.kind) {
      case "paragraph": return <p><Line text={block.text} /></p>;
      case "heading": return <Heading level={block.level} text={block.text} />;
      case "code": return <Code language={block.language} text={block.text} />;
      case "rule": return <hr />;
      case "quote": return <blockquote><Nested text={block.text} depth={depth + 1} /></blockquote>;
      case "list": {
        const items = block.items.map((item, index) => <ItemView key={index} text={item} depth={depth + 1} />);
        return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
      }
      case "table": return (
        <div class="table" tabIndex={0} role="region" aria-label={t().conversation.table}>
          <table>
            <thead><tr>{block.head.map((cell, index) => <th key={index} scope="col"><Line text={cell} /></th>)}</tr></thead>
            <tbody>{block.rows.map((row, index) => <tr key={index}>{row.map((cell, column) => <td key={column}><Line text={cell} /></td>)}</tr>)}</tbody>
          </table>
        </div>
      );
    }
  },
  (before, after) => before.depth === after.depth && sameBlock(before.block, after.block),
);

const ItemView = memo<{ text: string; depth: number }>((props) => <li><Nested text={props.text} depth={props.depth} tight /></li>);

/** What is inside a quote or an item; a single paragraph there needs no paragraph around it. */
function Nested(props: { text: string; depth: number; tight?: boolean }): VNode {
  if (props.depth > DEEPEST) return <>{props.text}</>;
  const found = blocks(props.text);
  const [first, ...rest] = found;
  if (props.tight && first?.kind === "paragraph" && rest.every((block) => block.kind === "list")) {
    return <><Line text={first.text} /><Blocks found={rest} depth={props.depth} /></>;
  }
  return <Blocks found={found} depth={props.depth} />;
}

/** The page has its own first heading: those of an answer come below it. */
function Heading(props: { level: number; text: string }): VNode {
  const line = <Line text={props.text} />;
  if (props.level === 1) return <h2>{line}</h2>;
  if (props.level === 2) return <h3>{line}</h3>;
  return <h4>{line}</h4>;
}

const Line = memo<{ text: string }>((props) => {
  const parts = useMemo(() => inline(props.text), [props.text]);
  return <Parts parts={parts} />;
});

function Parts(props: { parts: Inline[] }): VNode {
  return <>{props.parts.map((part, index) => <Part key={index} part={part} />)}</>;
}

function Part({ part }: { part: Inline }): VNode {
  switch (part.kind) {
    case "text": return <>{part.text}</>;
    case "break": return <br />;
    case "code": return <code>{part.text}</code>;
    case "strong": return <strong><Parts parts={part.parts} /></strong>;
    case "em": return <em><Parts parts={part.parts} /></em>;
    case "del": return <del><Parts parts={part.parts} /></del>;
    case "link": return <a href={part.href} target="_blank" rel="noopener noreferrer"><Parts parts={part.parts} /></a>;
  }
}

function Code(props: { language: string; text: string }): VNode {
  return (
    <div class="code">
      <div class="code-head">
        <span>{props.language || "text"}</span>
        <Copy text={props.text} label={t().conversation.copyCode} word />
      </div>
      <pre tabIndex={0}><code>{props.text}</code></pre>
    </div>
  );
}
