/** Draws what `reader.ts` has read, as elements. Blocks that did not change are not drawn again: of a growing answer that is all but the last two. */

import type { ComponentChildren, VNode } from "preact";
import { createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { characters, type MathToken, Reading, safeHref, type Token, type Tokens } from "../reader";
import { visibleCode } from "../words";
import { Coloured } from "./Coloured";
import { Formula } from "./Formula";
import { Copy, memo } from "./shared";

/** After a drawing that took c milliseconds, with its layout, the next waits for 4 c, at most so long: a long answer costs a fifth of the time, not all of it. */
const LONGEST_MS = 250;

/** False while what is drawn is far out of sight: its plain text stands there until it comes near. */
export const Near = createContext(true);

export function Markdown(props: { text: string; writing?: boolean }): VNode {
  return useContext(Near) ? <Read {...props} /> : <div class="prose"><p class="raw" dir="auto">{props.text}</p></div>;
}

function Read(props: { text: string; writing?: boolean }): VNode {
  const reading = useRef<Reading | null>(null);
  const pace = useRef({ next: 0, began: 0, tokens: [] as Token[] });
  const [, again] = useState(0);
  const now = performance.now();
  if (!props.writing || now >= pace.current.next) {
    pace.current.tokens = (reading.current ??= new Reading()).read(props.text);
    pace.current.began = now;
  }
  useLayoutEffect(() => {
    if (!props.writing || pace.current.began !== now) return;
    // A timer runs once the frame is laid out and painted.
    setTimeout(() => (pace.current.next = performance.now() + Math.min(LONGEST_MS, 4 * (performance.now() - now))));
  });
  const late = Boolean(props.writing) && now < pace.current.next && pace.current.next - now > 1;
  useEffect(() => {
    if (!late) return;
    const timer = setTimeout(() => again((count) => count + 1), pace.current.next - performance.now() + 1);
    return () => clearTimeout(timer);
  }, [props.text, late]);
  const { tokens } = pace.current;
  const blocks = useMemo(() => tokens.map((token, index) => <Block key={index} token={token} />), [tokens]);
  return <div class={props.writing ? "prose writing" : "prose"}>{blocks}</div>;
}

const Block = memo<{ token: Token }>(({ token }) => block(token));

function block(token: Token): VNode {
  switch (token.type) {
    case "space": case "def": return <></>;
    case "paragraph": return <p dir="auto">{inline((token as Tokens.Paragraph).tokens)}</p>;
    case "heading": return <Heading token={token as Tokens.Heading} />;
    case "code": return <Code token={token as Tokens.Code} />;
    case "hr": return <hr />;
    case "blockquote": return <blockquote dir="auto">{(token as Tokens.Blockquote).tokens.map((inner, index) => <Block key={index} token={inner} />)}</blockquote>;
    case "list": return <List token={token as Tokens.List} />;
    case "table": return <Table token={token as Tokens.Table} />;
    case "html": return <p class="raw" dir="auto">{token.raw.trimEnd()}</p>;
    case "mathBlock": return <Formula text={(token as unknown as MathToken).text} block />;
    case "text": return <p dir="auto">{inlineOf(token as Tokens.Text)}</p>;
    default: return <p class="raw" dir="auto">{token.raw}</p>;
  }
}

function inlineOf(token: Tokens.Text): ComponentChildren {
  return token.tokens ? inline(token.tokens) : characters(token.text);
}

/** The page has its own first heading: those of an answer come below it. */
function Heading(props: { token: Tokens.Heading }): VNode {
  const { depth, tokens } = props.token;
  if (depth === 1) return <h2 dir="auto">{inline(tokens)}</h2>;
  if (depth === 2) return <h3 dir="auto">{inline(tokens)}</h3>;
  return <h4 dir="auto">{inline(tokens)}</h4>;
}

function List(props: { token: Tokens.List }): VNode {
  const { items, ordered, start } = props.token;
  const drawn = items.map((item, index) => <Item key={index} item={item} />);
  if (ordered) return <ol dir="auto" {...(typeof start === "number" && start !== 1 && { start })}>{drawn}</ol>;
  return <ul dir="auto" class={items.some((item) => item.task) ? "tasks" : undefined}>{drawn}</ul>;
}

const Item = memo<{ item: Tokens.ListItem }>(({ item }) => (
  <li dir="auto">
    {item.task && <input type="checkbox" checked={item.checked ?? false} disabled aria-label={item.checked ? "☑" : "☐"} />}
    {item.tokens.filter((token) => token.type !== "checkbox").map((token, index) => (token.type === "text" && !item.loose ? <span key={index}>{inlineOf(token as Tokens.Text)}</span> : <Block key={index} token={token} />))}
  </li>
));

function Table(props: { token: Tokens.Table }): VNode {
  const { header, rows } = props.token;
  return (
    <div class="table" tabIndex={0} role="region" aria-label={t().conversation.table}>
      <table>
        <thead><tr>{header.map((cell, index) => <th key={index} scope="col" class={side(cell)} dir="auto">{inline(cell.tokens)}</th>)}</tr></thead>
        {rows.length > 0 && <tbody>{rows.map((row, index) => <Row key={index} cells={row} />)}</tbody>}
      </table>
    </div>
  );
}

/** On which side its words stand, where that is not the usual one. */
function side({ align }: Tokens.TableCell): string | undefined {
  return align === "right" || align === "center" ? align : undefined;
}

const Row = memo<{ cells: Tokens.TableCell[] }>(({ cells }) => (
  <tr>{cells.map((cell, index) => <td key={index} class={side(cell)} dir="auto">{inline(cell.tokens)}</td>)}</tr>
));

function inline(tokens: Token[] | undefined): ComponentChildren {
  return tokens?.map((token, index) => <Inline key={index} token={token} />);
}

function Inline({ token }: { token: Token }): VNode {
  switch (token.type) {
    case "text": return <>{inlineOf(token as Tokens.Text)}</>;
    case "escape": return <>{characters((token as Tokens.Escape).text)}</>;
    case "br": return <br />;
    case "codespan": return <code>{visibleCode((token as Tokens.Codespan).text)}</code>;
    case "strong": return <strong>{inline((token as Tokens.Strong).tokens)}</strong>;
    case "em": return <em>{inline((token as Tokens.Em).tokens)}</em>;
    case "del": return <del>{inline((token as Tokens.Del).tokens)}</del>;
    case "link": return <Link href={(token as Tokens.Link).href}>{inline((token as Tokens.Link).tokens)}</Link>;
    // Nothing is fetched from elsewhere because an answer says so.
    case "image": return <Link href={(token as Tokens.Image).href}>{characters((token as Tokens.Image).text) || (token as Tokens.Image).href}</Link>;
    case "math": return <Formula text={(token as unknown as MathToken).text} block={false} />;
    default: return <>{token.raw}</>;
  }
}

function Link(props: { href: string; children: ComponentChildren }): VNode {
  const href = safeHref(characters(props.href));
  return href === null ? <>{props.children}</> : <a href={href} target="_blank" rel="noopener noreferrer">{props.children}</a>;
}

function Code(props: { token: Tokens.Code }): VNode {
  const { lang, text, raw } = props.token;
  const language = lang?.trim().split(/\s/, 1)[0] ?? "";
  // In code a character that is not seen is an attack. What is copied is what was written.
  const shown = visibleCode(text);
  const closed = props.token.codeBlockStyle === "indented" || /\n {0,3}(`{3,}|~{3,})\s*$/.test(raw);
  return (
    <div class="code">
      <div class="code-head">
        <span>{visibleCode(language) || t().conversation.code}</span>
        <Copy text={text} label={t().conversation.copyCode} word />
      </div>
      <pre tabIndex={0} dir="ltr"><code>{closed ? <Coloured language={language} text={shown} /> : shown}</code></pre>
    </div>
  );
}
