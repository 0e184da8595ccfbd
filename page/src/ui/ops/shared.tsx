/** What the cards of the operator's view share. */

import type { ComponentChildren, VNode } from "preact";
import { t } from "../../i18n";
import { plainClick, useApp } from "../shared";

/** `id`: where the list of sections leads to. */
export function Card(props: { id: string; title: string; sub?: string; right?: ComponentChildren; children: ComponentChildren; testid: string }): VNode {
  return (
    <section class="card" id={`ops-${props.id}`} aria-label={props.title} tabIndex={-1} data-testid={props.testid}>
      <header><h2>{props.title}</h2>{props.sub && <span class="dim">{props.sub}</span>}{props.right && <span class="right">{props.right}</span>}</header>
      {props.children}
    </section>
  );
}

/** A sentence in which commands stand in backticks. */
export function Told(props: { text: string }): VNode {
  return <>{props.text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}

export function Empty(props: { children: ComponentChildren }): VNode {
  return <p class="empty">{props.children}</p>;
}

/** In place of what was not read yet, and cannot be while the server is away. */
export function Unread(props: { plain?: boolean }): VNode {
  const said = useApp().connection.away.value ? t().conversation.unknownAway : t().details.loading;
  return props.plain ? <>{said}</> : <Empty>{said}</Empty>;
}

/** A table that scrolls sideways for itself, also by keyboard. */
export function Table(props: { label: string; children: ComponentChildren }): VNode {
  return <div class="table-scroll" tabIndex={0} role="region" aria-label={props.label}><table class="tb">{props.children}</table></div>;
}

export function Open(props: { session: string; children: ComponentChildren; class?: string }): VNode {
  const app = useApp();
  return <a class={props.class ?? "plain"} href={`/s/${encodeURIComponent(props.session)}`} onClick={plainClick(() => app.go(props.session))}>{props.children}</a>;
}
