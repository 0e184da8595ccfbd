import type { TargetedKeyboardEvent, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { grouped } from "../list";
import { isNew, titleFrom } from "../outbox";
import type { Session, Summary } from "../types";
import { moment, platformOf, sign, titleOf, when } from "../words";
import { ArchivedHits } from "./ArchivedHits";
import { Gate } from "./Gate";
import { ArchiveIcon, CloseIcon, DotsIcon, Mark, PenIcon, PinIcon, PlatformIcon, PlusIcon, SearchIcon, SideIcon, StateSign, TrashIcon } from "./icons";
import { Menu, MenuItem } from "./Menu";
import { Settings } from "./Settings";
import { IconButton, memo, plainClick, sameProps, useApp, useNow, useSame } from "./shared";

export function Sidebar(): VNode {
  const app = useApp();
  const words = t().list;
  return (
    <aside class="sidebar" id="sidebar" aria-label={words.label} data-open={app.drawer.value}>
      <div class="sidebar-head">
        <a class="brand" href="/" onClick={plainClick(() => app.go(null))}><Mark /><span>Holdfast</span></a>
        <Settings />
        <IconButton label={words.hide} class="list-hide" testid="hide-list" onClick={() => app.hideList()}><SideIcon /></IconButton>
        <IconButton label={words.close} class="drawer-close" onClick={() => (app.drawer.value = false)}><CloseIcon /></IconButton>
      </div>
      <button type="button" class="new" data-testid="new-conversation" onClick={() => { app.go(null); document.getElementById("composer")?.focus(); }}>
        <PlusIcon /><span>{words.new}</span>
      </button>
      <Search />
      {app.list.deleted.value === null ? <Conversations /> : <Deleted sessions={app.list.deleted.value} />}
      <Gate />
    </aside>
  );
}

function isMac(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.platform);
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
        type="search" id="search" data-testid="search" aria-label={t().list.search} placeholder={t().list.search} value={text} autocomplete="off"
        onInput={(event) => search(event.currentTarget.value, 200)}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") {
            event.preventDefault();
            document.querySelector<HTMLElement>("#sidebar .list a")?.focus();
          }
          if (event.key !== "Escape" || text === "") return;
          event.stopPropagation();
          search("", 0);
        }}
      />
      <span class="search-keys" aria-hidden="true"><kbd>/</kbd><kbd>{isMac() ? "⌘ K" : "Ctrl K"}</kbd></span>
    </div>
  );
}

function Conversations(): VNode {
  const app = useApp();
  const words = t().list;
  const { sessions, more, query, archived, loadingMore } = app.list;
  const now = useNow(true, 60_000);
  const live = useSame(() => {
    const session = app.conversation.view.value?.session;
    return session ? lively(session, app.conversation.firstWords(session.session_id)) : null;
  }).value;
  const shown = live && sessions.value ? sessions.value.map((session) => (session.session_id === live.session_id ? { ...session, ...live, title: live.title ?? session.title } : session)) : sessions.value;
  const begun = archived.value || query.value ? [] : [...new Set(app.sending.items.value.map((item) => item.conversation).filter(isNew))];
  const nothing = shown !== null && shown.length === 0 && begun.length === 0;
  const groups = query.value || archived.value ? [{ title: archived.value ? words.archived : words.results(shown?.length ?? 0), needs: false, sessions: shown ?? [] }] : grouped(shown ?? [], new Date(now));
  return (
    <nav class="list" aria-label={archived.value ? words.archivedLabel : words.label} onKeyDown={arrows} ref={(box) => endless(box, () => void app.list.loadMore())}>
      {archived.value && <p class="list-title"><span>{words.archived}</span><button type="button" class="b small" onClick={() => app.list.showArchived(false)}>{words.back}</button></p>}
      {nothing && !(query.value && app.list.found.value?.hits.some((hit) => hit.archived)) && <p class="list-empty">{query.value ? words.nothingFound : archived.value ? words.nothingArchived : words.empty}</p>}
      <div data-testid="conversation-list">
        {begun.length > 0 && <ul>{begun.map((name) => <Begun key={name} name={name} />)}</ul>}
        {groups.filter((group) => group.sessions.length > 0).map((group) => (
          <section key={group.title} aria-label={group.title}>
            {!archived.value && <h2 class={group.needs ? "list-title needs" : "list-title"}>{group.title}{group.needs && <span>· {group.sessions.length}</span>}</h2>}
            <ul>{group.sessions.map((session) => <Entry key={session.session_id} session={session} now={now} />)}</ul>
          </section>
        ))}
      </div>
      {!archived.value && <ArchivedHits shown={new Set(shown?.map((session) => session.session_id))} />}
      {more.value !== null && (
        <button type="button" class="b small more" disabled={loadingMore.value} onClick={() => void app.list.loadMore()}>
          {loadingMore.value ? words.loading : words.more}
        </button>
      )}
    </nav>
  );
}

/** What was deleted and can still be brought back. It cannot be opened until then. */
function Deleted(props: { sessions: Summary[] }): VNode {
  const app = useApp();
  const words = t().list;
  const now = useNow(true, 60_000);
  return (
    <nav class="list" aria-label={words.deletedLabel} data-testid="deleted-list">
      <p class="list-title"><span>{words.deletedLabel}</span><button type="button" class="b small" onClick={() => app.list.showDeleted(false)}>{words.back}</button></p>
      <p class="list-empty">{props.sessions.length === 0 ? words.nothingDeleted : words.deletedHint}</p>
      <ul>
        {props.sessions.map((session) => (
          <li key={session.session_id} class="entry deleted" data-testid="deleted-item" data-session-id={session.session_id}>
            <span class="plat"><PlatformIcon platform={platformOf(session.session_key)} /></span>
            <span class="title">{titleOf(session, app.conversation.firstWords(session.session_id))}</span>
            <time class="when" dateTime={session.updated_at} title={moment(session.updated_at)}>{when(session.updated_at, new Date(now))}</time>
            <button type="button" class="b small" data-testid="bring-back" onClick={() => void app.undelete(session.session_id)}>{t().common.undo}</button>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** More of the list comes as its end comes near. */
function endless(box: HTMLElement | null, more: () => void): void {
  if (box === null) return;
  box.onscroll = () => {
    if (box.scrollHeight - box.scrollTop - box.clientHeight < 300) more();
  };
}

/** The open conversation is known better than the last news of the list. */
function lively(session: Session, first_words: string | null): Pick<Summary, "session_id" | "title" | "state" | "queued" | "suspended" | "current" | "left" | "needs" | "unread"> {
  const asks = session.questions[0];
  const needs = asks ? (asks.kind === "approval" ? "approval" : "question") : null;
  const { session_id, title, state, queued, suspended, current, left } = session;
  return { session_id, title: title ?? first_words, state, queued, suspended, current, left, needs, unread: false };
}

/** Drawn again only when something that it says changes: others change many times a second. `now`: in milliseconds. */
const Entry = memo<{ session: Summary; now: number }>((props) => {
  const app = useApp();
  const words = t().list;
  const [renaming, setRenaming] = useState(false);
  const current = app.route.value.session === props.session.session_id;
  const { session } = props;
  const title = titleOf(session, app.conversation.firstWords(session.session_id));
  const state = sign(session, app.connection.away.value);
  const unread = Boolean(session.unread) && !current;
  return (
    <li class="entry" data-testid="conversation-item" data-session-id={session.session_id} data-state={session.suspended ? "suspended" : session.state} data-unread={unread}>
      {renaming ? <Rename session={session} done={() => setRenaming(false)} /> : (
        <a href={`/s/${encodeURIComponent(session.session_id)}`} aria-current={current ? "page" : undefined} onClick={plainClick(() => app.go(session.session_id))} onDblClick={() => setRenaming(true)}>
          <span class="plat"><PlatformIcon platform={platformOf(session.session_key)} /></span>
          <span class="title">{title}{unread && <span class="sr-only">, {words.unread}</span>}</span>
          <time class="when" dateTime={session.updated_at} title={moment(session.updated_at)}>{when(session.updated_at, new Date(props.now))}</time>
          <span class="sub">{state ? <StateSign sign={state} /> : session.excerpt}</span>
        </a>
      )}
      <Hits session={session.session_id} />
      {!renaming && (
        <span class="entry-actions">
          <Menu label={words.actions(title)} icon={<DotsIcon />} testid="entry-menu"><SessionItems session={session} rename={() => setRenaming(true)} /></Menu>
        </span>
      )}
    </li>
  );
}, (before, after) => before.now === after.now && sameProps(before.session, after.session));

/** Where the words of the search are, in a conversation: each leads to its message. */
function Hits(props: { session: string }): VNode | null {
  const app = useApp();
  const hits = app.list.found.value?.hits.filter((hit) => hit.session_id === props.session && hit.message_id !== null) ?? [];
  if (app.list.query.value === "" || hits.length === 0) return null;
  return (
    <div class="hits">
      {hits.map((hit) => (
        <a key={hit.message_id} href={`/s/${encodeURIComponent(props.session)}`} data-testid="hit" onClick={plainClick(() => app.jump(props.session, hit.message_id!))}>
          {hit.excerpt.map(([text, found], index) => (found ? <mark key={index}>{text}</mark> : text))}
        </a>
      ))}
    </div>
  );
}

/** What can be done with a conversation as a whole, wherever it is named. */
export function SessionItems(props: { session: Summary; rename: () => void }): VNode {
  const app = useApp();
  const words = t().list;
  const { session } = props;
  return (
    <>
      <MenuItem icon={<PenIcon />} testid="rename" onClick={props.rename}>{words.rename}</MenuItem>
      <MenuItem icon={<PinIcon />} testid="pin" onClick={() => void app.change(session, { pinned: !session.pinned })}>{session.pinned ? words.unpin : words.pin}</MenuItem>
      <MenuItem icon={<ArchiveIcon />} testid="archive" onClick={() => void app.change(session, { archived: !session.archived })}>{session.archived ? words.unarchive : words.archive}</MenuItem>
      <MenuItem icon={<TrashIcon />} testid="delete" danger onClick={() => void app.delete(session.session_id)}>{words.delete}</MenuItem>
    </>
  );
}

export function Rename(props: { session: Pick<Summary, "session_id" | "title" | "pinned" | "archived">; done: () => void }): VNode {
  const app = useApp();
  const [title, setTitle] = useState(props.session.title ?? "");
  const field = useRef<HTMLInputElement>(null);
  const over = useRef(false);
  useEffect(() => {
    field.current!.focus();
    field.current!.select();
  }, []);
  const finish = (save: boolean): void => {
    if (over.current) return;
    over.current = true;
    const next = title.trim();
    if (save && next !== "" && next !== props.session.title) void app.change(props.session, { title: next });
    props.done();
  };
  return (
    <form class="rename" onSubmit={(event) => { event.preventDefault(); finish(true); }}>
      <input
        ref={field} data-testid="rename-title" aria-label={t().list.title} value={title} maxLength={200} onInput={(event) => setTitle(event.currentTarget.value)} onBlur={() => finish(true)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.stopPropagation();
          event.preventDefault();
          finish(false);
        }}
      />
    </form>
  );
}

/** A conversation that was begun here and that the server does not know yet. */
function Begun(props: { name: string }): VNode {
  const app = useApp();
  const first = app.sending.items.value.find((item) => item.conversation === props.name);
  const text = first?.refused ? t().state.notSent : t().state.sendingHere;
  return (
    <li class="entry begun">
      <a href="/" aria-current={app.openName === props.name ? "page" : undefined} onClick={plainClick(() => app.goFresh(props.name))}>
        <span class="plat"><PlatformIcon platform="web" /></span>
        <span class="title">{titleFrom(first?.text ?? "") || first?.text}</span>
        <span class="when" />
        <span class="sub"><StateSign sign={{ shape: first?.refused ? "failed" : "queued", tone: first?.refused ? "red" : "", text }} /></span>
      </a>
    </li>
  );
}

function arrows(event: TargetedKeyboardEvent<HTMLElement>): void {
  if (event.target instanceof HTMLInputElement || (event.target as Element).closest(".menu")) return;
  const step = event.key === "ArrowDown" || event.key === "j" ? 1 : event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
  if (step === 0) return;
  const links = [...event.currentTarget.querySelectorAll<HTMLAnchorElement>("li > a")];
  const at = links.findIndex((link) => link.parentElement!.contains(document.activeElement));
  if (at === 0 && step < 0) document.getElementById("search")?.focus();
  else links[Math.min(links.length - 1, Math.max(0, at + step))]?.focus();
  event.preventDefault();
}
