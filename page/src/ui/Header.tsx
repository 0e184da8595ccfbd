import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ConnectionState } from "../connection";
import type { Session } from "../types";
import { badge, titleOf } from "../words";
import { ArchiveIcon, MenuIcon, PenIcon, PinIcon, UnarchiveIcon } from "./icons";
import { IconButton, useApp } from "./shared";

export function Header(): VNode {
  const app = useApp();
  const session = app.route.value.session === null ? null : (app.conversation.view.value?.session ?? null);
  const [editing, setEditing] = useState(false);
  useEffect(() => setEditing(false), [app.openName]);
  return (
    <header class="head">
      <IconButton label="Show the list of conversations" class="drawer-open" onClick={() => (app.drawer.value = true)}><MenuIcon /></IconButton>
      {session && editing
        ? <Rename session={session} done={() => setEditing(false)} />
        : <h1 class="head-title">{session ? titleOf(session, app.conversation.firstWords(session.session_id)) : app.route.value.session ? "" : "New conversation"}</h1>}
      {session && !editing && <Actions session={session} rename={() => setEditing(true)} />}
      <ConnectionSign state={app.connection.state.value} />
    </header>
  );
}

function Actions(props: { session: Session; rename: () => void }): VNode {
  const app = useApp();
  const { session } = props;
  const mark = badge(session);
  return (
    <>
      {mark && mark.kind !== "running" && <span class={`badge ${mark.kind}`}>{mark.text}</span>}
      <div class="head-actions">
        <IconButton label="Rename" testid="rename" onClick={props.rename}><PenIcon /></IconButton>
        <IconButton label={session.pinned ? "Unpin" : "Pin"} testid="pin" pressed={session.pinned} onClick={() => void app.change(session, { pinned: !session.pinned })}><PinIcon filled={session.pinned} /></IconButton>
        <IconButton label={session.archived ? "Unarchive" : "Archive"} testid="archive" onClick={() => void app.change(session, { archived: !session.archived })}>
          {session.archived ? <UnarchiveIcon /> : <ArchiveIcon />}
        </IconButton>
      </div>
    </>
  );
}

function Rename(props: { session: Session; done: () => void }): VNode {
  const app = useApp();
  const [title, setTitle] = useState(props.session.title ?? "");
  const field = useRef<HTMLInputElement>(null);
  const over = useRef(false);
  useEffect(() => field.current!.select(), []);
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
        ref={field} data-testid="rename-title" aria-label="Title" value={title} maxLength={200} onInput={(event) => setTitle(event.currentTarget.value)} onBlur={() => finish(true)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.stopPropagation();
          finish(false);
        }}
      />
    </form>
  );
}

const WORDS: Record<ConnectionState, string> = { live: "Live", reconnecting: "Reconnecting", "signed-out": "Signed out" };

function ConnectionSign(props: { state: ConnectionState }): VNode {
  return (
    <div class={`connection ${props.state}`} data-testid="connection" data-state={props.state} role="status" title={WORDS[props.state]}>
      <span class="connection-dot" aria-hidden="true" /><span class="connection-word">{WORDS[props.state]}</span>
    </div>
  );
}
