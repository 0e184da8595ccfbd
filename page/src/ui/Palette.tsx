import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { titleOf } from "../words";
import { ArchiveIcon, KeysIcon, PanelIcon, PlatformIcon, PlusIcon, PulseIcon, SearchIcon, StopIcon, TrashIcon } from "./icons";
import { useDialog } from "./Keys";
import { liveTurn } from "../log";
import { platformOf } from "../words";
import { useApp } from "./shared";
import type { App } from "../app";
import type { Summary } from "../types";

interface Entry {
  id: string;
  group: string;
  title: string;
  icon: VNode;
  run: () => void;
}

/** Everything that can be reached or done, by typing a few letters of it. */
export function Palette(): VNode {
  const app = useApp();
  const open = app.palette.value;
  const dialog = useDialog(open, () => (app.palette.value = false));
  return (
    <dialog class="palette" ref={dialog} aria-label={t().palette.label} data-testid="palette" onClick={(event) => { if (event.target === dialog.current) dialog.current!.close(); }}>
      {open && <Finder close={() => dialog.current?.close()} />}
    </dialog>
  );
}

function Finder(props: { close: () => void }): VNode {
  const app = useApp();
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const [found, setFound] = useState<Summary[] | null>(null);
  const list = useRef<HTMLUListElement>(null);
  const words = t().palette;
  useEffect(() => {
    const query = text.trim();
    setChosen(null);
    if (query === "") return setFound(null);
    let over = false;
    const timer = setTimeout(() => void app.api.sessions({ query, limit: 20 }).then((page) => { if (!over) setFound(page.sessions); }, () => undefined), 150);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [text]);
  const entries = entriesOf(app, text.trim(), found);
  const at = Math.max(0, entries.findIndex((entry) => entry.id === chosen));
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [at]);
  const take = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    props.close();
    entry.run();
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) setChosen(entries[(at + step + entries.length) % Math.max(1, entries.length)]?.id ?? null);
    else if (event.key === "Enter") take(entries[at]);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div class="palette-field">
        <SearchIcon />
        <input
          type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={entries[at] ? `palette-${entries[at].id}` : undefined} aria-autocomplete="list"
          aria-label={words.placeholder} placeholder={words.placeholder} data-testid="palette-field" autofocus autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={pressed}
        />
        <kbd>Esc</kbd>
      </div>
      <ul id="palette-list" role="listbox" aria-label={words.label} ref={list}>
        {entries.map((entry, index) => (
          <>
            {entry.group !== entries[index - 1]?.group && <li class="group" role="presentation">{entry.group}</li>}
            <li id={`palette-${entry.id}`} role="option" aria-selected={index === at} data-testid="palette-entry" onMouseMove={() => setChosen(entry.id)} onClick={() => take(entry)}>{entry.icon}<span class="title">{entry.title}</span></li>
          </>
        ))}
      </ul>
      {entries.length === 0 && <p class="empty">{words.nothing}</p>}
    </>
  );
}

/** The letters in their order, somewhere in the words. */
export function fits(title: string, typed: string): boolean {
  const words = title.toLowerCase();
  return typed.toLowerCase().split(/\s+/).every((part) => words.includes(part));
}

function entriesOf(app: App, typed: string, found: Summary[] | null): Entry[] {
  const words = t();
  const view = app.conversation.view.value;
  const actions: Entry[] = [
    { id: "new", title: words.list.new, icon: <PlusIcon />, run: () => { app.go(null); document.getElementById("composer")?.focus(); } },
    { id: "operations", title: words.palette.operations, icon: <PulseIcon />, run: () => app.goOperations() },
    ...(view && liveTurn(view.session) ? [{ id: "stop", title: words.composer.stopLabel, icon: <StopIcon />, run: () => void app.conversation.stop() }] : []),
    ...(view ? [{ id: "details", title: words.head.details, icon: <PanelIcon />, run: () => app.toggleDetails() }] : []),
    { id: "archived", title: words.list.archivedLabel, icon: <ArchiveIcon />, run: () => { app.showList(); app.list.showArchived(true); } },
    { id: "deleted", title: words.list.deletedLabel, icon: <TrashIcon />, run: () => { app.showList(); app.list.showDeleted(true); } },
    { id: "keys", title: words.settings.keys, icon: <KeysIcon />, run: () => (app.showingKeys.value = true) },
  ].map((entry) => ({ ...entry, group: words.palette.actions }));
  const known = app.list.sessions.value ?? [];
  const by_title = known.filter((session) => fits(titleOf(session), typed));
  const others = (found ?? []).filter((session) => !by_title.some((other) => other.session_id === session.session_id));
  const conversation = (group: string) => (session: Summary): Entry => ({ id: session.session_id, group, title: titleOf(session, app.conversation.firstWords(session.session_id)), icon: <PlatformIcon platform={platformOf(session.session_key)} />, run: () => app.go(session.session_id) });
  return [
    ...by_title.slice(0, typed === "" ? 6 : 12).map(conversation(words.palette.conversations)),
    ...actions.filter((entry) => fits(entry.title, typed)),
    // They come late: nothing that can be chosen already may move for them.
    ...others.slice(0, 12).map(conversation(words.palette.messages)),
  ];
}
