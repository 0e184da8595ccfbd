import type { TargetedKeyboardEvent, TargetedMouseEvent, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { isNew, titleFrom } from "../outbox";
import type { Summary } from "../types";
import { ago, badge, moment, titleOf } from "../words";
import { ArchiveIcon, CloseIcon, Mark, PinIcon, PlusIcon, SearchIcon, UnarchiveIcon } from "./icons";
import { IconButton, useApp } from "./shared";

export function Sidebar(): VNode {
  const app = useApp();
  return (
    <aside class="sidebar" id="sidebar" aria-label="Conversations" data-open={app.drawer.value}>
      <div class="sidebar-head">
        <a class="brand" href="/" onClick={plainClick(() => app.go(null))}><Mark /><span>Holdfast</span></a>
        <IconButton label="Close the list" class="drawer-close" onClick={() => (app.drawer.value = false)}><CloseIcon /></IconButton>
      </div>
      <button type="button" class="new" data-testid="new-conversation" onClick={() => { app.go(null); document.getElementById("composer")?.focus(); }}>
        <PlusIcon /><span>New conversation</span>
      </button>
      <Search />
      <Conversations />
      <div class="sidebar-foot">
        <button type="button" class="text-button" aria-pressed={app.list.archived.value} onClick={() => app.list.showArchived(!app.list.archived.value)}>
          {app.list.archived.value ? "Back to the list" : "Archived"}
        </button>
        <button type="button" class="text-button" onClick={() => void app.signOut()}>Sign out</button>
      </div>
    </aside>
  );
}

function Search(): VNode {
  const app = useApp();
  const [text, setText] = useState(app.list.query.value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const search = (query: string, ms: number): void => {
    setText(query);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => app.list.search(query), ms);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <div class="search" role="search">
      <SearchIcon />
      <input
        type="search" id="search" data-testid="search" aria-label="Search conversations" placeholder="Search" value={text} autocomplete="off"
        onInput={(event) => search(event.currentTarget.value, 200)}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || text === "") return;
          event.stopPropagation();
          search("", 0);
        }}
      />
    </div>
  );
}

function Conversations(): VNode {
  const app = useApp();
  const { sessions, more, query, archived, loadingMore } = app.list;
  const shown = sessions.value;
  const pinned = shown?.filter((session) => session.pinned) ?? [];
  const others = shown?.filter((session) => !session.pinned) ?? [];
  const begun = archived.value || query.value ? [] : [...new Set(app.sending.items.value.map((item) => item.conversation).filter(isNew))];
  const nothing = shown !== null && shown.length === 0 && begun.length === 0;
  return (
    <nav class="list" aria-label={archived.value ? "Archived conversations" : "Conversations"} onKeyDown={arrows}>
      {archived.value && <p class="list-title">Archived</p>}
      {nothing && <p class="list-empty">{query.value ? "Nothing found." : archived.value ? "Nothing is archived." : "No conversations yet."}</p>}
      <ul data-testid="conversation-list">
        {begun.map((name) => <Begun key={name} name={name} />)}
        {pinned.length > 0 && <li class="list-title" role="presentation">Pinned</li>}
        {pinned.map((session) => <Entry key={session.session_id} session={session} />)}
        {pinned.length > 0 && others.length > 0 && <li class="list-title" role="presentation">Recent</li>}
        {others.map((session) => <Entry key={session.session_id} session={session} />)}
      </ul>
      {more.value !== null && (
        <button type="button" class="small-button more" disabled={loadingMore.value} onClick={() => void app.list.loadMore()}>
          {loadingMore.value ? "Loading…" : "Load more"}
        </button>
      )}
    </nav>
  );
}

function Entry(props: { session: Summary }): VNode {
  const app = useApp();
  const current = app.route.value.session === props.session.session_id;
  // The open conversation is known better than the last poll of the list.
  const live = current ? app.conversation.view.value?.session : undefined;
  const session = live ? { ...props.session, title: live.title, state: live.state, queued: live.queued, suspended: live.suspended, current: live.current, left: live.left } : props.session;
  const title = titleOf(session, app.conversation.firstWords(session.session_id));
  const mark = badge(session, app.connection.away.value);
  return (
    <li class="entry" data-testid="conversation-item" data-session-id={session.session_id} data-state={session.suspended ? "suspended" : session.state}>
      <a href={`/s/${encodeURIComponent(session.session_id)}`} aria-current={current ? "page" : undefined} onClick={plainClick(() => app.go(session.session_id))}>
        <span class="entry-title">{title}</span>
        <span class="entry-foot">
          {mark && <span class={`badge ${mark.kind}`}>{mark.text}</span>}
          <time dateTime={session.updated_at} title={moment(session.updated_at)}>{ago(session.updated_at, new Date())}</time>
        </span>
      </a>
      <span class="entry-actions">
        <IconButton label={session.pinned ? "Unpin" : "Pin"} pressed={session.pinned} onClick={() => void app.change(session, { pinned: !session.pinned })}><PinIcon filled={session.pinned} /></IconButton>
        <IconButton label={session.archived ? "Unarchive" : "Archive"} onClick={() => void app.change(session, { archived: !session.archived })}>
          {session.archived ? <UnarchiveIcon /> : <ArchiveIcon />}
        </IconButton>
      </span>
    </li>
  );
}

/** A conversation that was begun here and that the server does not know yet. */
function Begun(props: { name: string }): VNode {
  const app = useApp();
  const first = app.sending.items.value.find((item) => item.conversation === props.name);
  return (
    <li class="entry begun">
      <a href="/" aria-current={app.openName === props.name ? "page" : undefined} onClick={plainClick(() => app.goFresh(props.name))}>
        <span class="entry-title">{titleFrom(first?.text ?? "") || first?.text}</span>
        <span class="entry-foot"><span class="badge queued">{first?.refused ? "not sent" : "sending…"}</span></span>
      </a>
    </li>
  );
}

/** A plain click stays in the page; one that asks for another tab or window is the browser's. */
function plainClick(then: () => void): (event: TargetedMouseEvent<HTMLAnchorElement>) => void {
  return (event) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    then();
  };
}

function arrows(event: TargetedKeyboardEvent<HTMLElement>): void {
  const step = event.key === "ArrowDown" || event.key === "j" ? 1 : event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
  if (step === 0) return;
  const links = [...event.currentTarget.querySelectorAll<HTMLAnchorElement>(".entry > a")];
  const at = links.findIndex((link) => link.parentElement!.contains(document.activeElement));
  links[Math.min(links.length - 1, Math.max(0, at + step))]?.focus();
  event.preventDefault();
}
