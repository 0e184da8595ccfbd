/** What a search found in conversations that are archived: they are in no list, so they stand below it. */

import type { VNode } from "preact";
import { t } from "../i18n";
import type { Hit } from "../types";
import { titleOf } from "../words";
import { plainClick, useApp } from "./shared";

export function ArchivedHits(props: { shown: ReadonlySet<string> }): VNode | null {
  const app = useApp();
  const words = t().list;
  if (app.list.query.value === "") return null;
  const sessions = new Map<string, Hit[]>();
  for (const hit of app.list.found.value?.hits ?? []) {
    if (hit.archived && !props.shown.has(hit.session_id)) sessions.set(hit.session_id, [...(sessions.get(hit.session_id) ?? []), hit]);
  }
  if (sessions.size === 0) return null;
  return (
    <section aria-label={words.archived} data-testid="archived-hits">
      <h2 class="list-title">{words.archived}</h2>
      {[...sessions].map(([session, hits]) => (
        <div key={session} class="hits">
          <a href={`/s/${encodeURIComponent(session)}`} data-testid="archived-hit" onClick={plainClick(() => app.go(session))}><b dir="auto">{titleOf(hits[0]!)}</b></a>
          {hits.filter((hit) => hit.message_id !== null).map((hit) => (
            <a key={hit.message_id} href={`/s/${encodeURIComponent(session)}`} data-testid="hit" onClick={plainClick(() => app.jump(session, hit.message_id!))}>
              {hit.excerpt.map(([text, found], index) => (found ? <mark key={index}>{text}</mark> : text))}
            </a>
          ))}
        </div>
      ))}
    </section>
  );
}
