import { useComputed } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ConnectionState } from "../connection";
import { t } from "../i18n";
import type { Overview } from "../log";
import { correspondent, platformName, platformOf, sign, titleOf } from "../words";
import { DotsIcon, ExportIcon, MenuIcon, PanelIcon, PlatformIcon, SearchIcon, StateSign } from "./icons";
import { Menu, MenuItem } from "./Menu";
import { Rename, SessionItems } from "./Sidebar";
import { IconButton, useApp, useOpen } from "./shared";

export function Header(): VNode {
  const app = useApp();
  const session = useOpen();
  const [editing, setEditing] = useState(false);
  useEffect(() => setEditing(false), [app.openName]);
  return (
    <header class="head">
      <IconButton label={t().list.show} class="drawer-open" testid="show-list" onClick={() => app.showList()}><MenuIcon /></IconButton>
      {session && editing
        ? <Rename session={session} done={() => setEditing(false)} />
        : <h1 class="head-title" dir="auto">{session ? titleOf(session, app.conversation.firstWords(session.session_id)) : app.route.value.session ? "" : t().head.new}</h1>}
      {session && !editing && <Facts session={session} rename={() => setEditing(true)} />}
      <ConnectionSign state={app.connection.state.value} />
    </header>
  );
}

function Facts(props: { session: Overview; rename: () => void }): VNode {
  const app = useApp();
  const { session } = props;
  const platform = platformOf(session.session_key);
  const state = sign({ ...session, needs: null, delivery: null }, app.connection.away.value);
  const words = t().head;
  const turns = useComputed(() => (app.conversation.view.value?.session.turns.length ?? 0) > 0);
  const person = useComputed(() => {
    const open = app.conversation.view.value?.session;
    return open ? correspondent(open.session_key, open.messages) : null;
  });
  const id = encodeURIComponent(session.session_id);
  return (
    <>
      {platform !== "web" && <span class="chip" data-testid="platform"><PlatformIcon platform={platform} small />{platformName(platform)}{person.value && <span class="person" dir="auto"> · {person.value}</span>}</span>}
      {state && <StateSign sign={state} pill />}
      <Menu label={t().common.more} icon={<DotsIcon />} testid="session-menu">
        <MenuItem icon={<SearchIcon />} testid="find" onClick={() => (app.finding.value = session.session_id)}>{words.find}</MenuItem>
        <SessionItems session={session} rename={props.rename} />
        <hr />
        {([["md", words.asMarkdown], ["json", words.asJson], ["html", words.asHtml]] as const).map(([kind, label]) => (
          <a key={kind} role="menuitem" tabIndex={-1} href={`/api/sessions/${id}/export?as=${kind}`} download data-testid={`export-${kind}`}><ExportIcon /><span>{label}</span></a>
        ))}
      </Menu>
      {turns.value && <IconButton label={words.details} class={app.details.value !== null ? "on" : ""} expanded={app.details.value !== null} testid="details-button" onClick={() => app.toggleDetails()}><PanelIcon /></IconButton>}
    </>
  );
}

function ConnectionSign(props: { state: ConnectionState }): VNode {
  const words = t().head;
  const word = { live: words.live, reconnecting: words.reconnecting, "signed-out": words.signedOut }[props.state];
  return (
    <div class={`connection ${props.state}`} data-testid="connection" data-state={props.state} role="status">
      {props.state === "reconnecting" ? <span class="st amber pill"><svg class="alive" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="4.6" fill="none" stroke="currentColor" stroke-width="1.8" /></svg>{word}</span> : word}
    </div>
  );
}
