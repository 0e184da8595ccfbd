/** Finds words in the open conversation, also in what is not loaded: the server looks, and each find leads to its message. */

import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import type { Hit } from "../types";
import { when } from "../words";
import { CloseIcon, SearchIcon } from "./icons";
import { IconButton, useApp } from "./shared";

/** After so long without a key the server is asked. */
const PAUSE_MS = 200;

export function Find(): VNode | null {
  const app = useApp();
  const session = app.finding.value;
  return session !== null && session === app.route.value.session ? <Bar key={session} session={session} /> : null;
}

function Bar(props: { session: string }): VNode {
  const app = useApp();
  const words = t().head;
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<Hit[] | null>(null);
  const place = useRef<HTMLElement>(null);
  useEffect(() => place.current?.querySelector("input")?.focus(), []);
  useEffect(() => {
    if (query.trim() === "") return setFound(null);
    let over = false;
    const timer = setTimeout(() => void app.api.search(query.trim(), props.session).then(
      (answer) => { if (!over) setFound(answer.hits); },
      () => { if (!over) setFound(null); },
    ), PAUSE_MS);
    return () => { over = true; clearTimeout(timer); };
  }, [query]);
  const close = (): void => {
    app.finding.value = null;
    document.querySelector<HTMLElement>("[data-testid=session-menu]")?.focus();
  };
  const jump = (hit: Hit | undefined): void => {
    if (hit?.message_id) app.jump(props.session, hit.message_id);
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    const rows = [...(place.current?.querySelectorAll<HTMLElement>(".finds button") ?? [])];
    const at = rows.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && at < 0) jump(found?.[0]);
    else if (event.key === "ArrowDown") rows[Math.min(at + 1, rows.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (at <= 0 ? place.current?.querySelector("input") : rows[at - 1])?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <search class="find" ref={place} onKeyDown={pressed}>
      <div class="find-line">
        <SearchIcon />
        <input type="search" class="find-field" data-testid="find-field" aria-label={words.find} placeholder={words.find} value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
        <span class="dim" role="status" data-testid="find-count">{found !== null && words.found(found.length)}</span>
        <IconButton label={t().common.close} testid="close-find" onClick={close}><CloseIcon /></IconButton>
      </div>
      {found !== null && found.length > 0 && (
        <ul class="finds">
          {found.map((hit) => (
            <li key={hit.message_id}>
              <button type="button" data-testid="find-hit" onClick={() => jump(hit)}>
                <span dir="auto">{hit.excerpt.map(([text, is_find], index) => (is_find ? <mark key={index}>{text}</mark> : text))}</span>
                <span class="dim">{when(hit.at, new Date())}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </search>
  );
}
