import { useComputed, useSignalEffect } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { App } from "../app";
import { t } from "../i18n";
import { liveTurn } from "../log";
import { titleOf } from "../words";
import { AwayBar, SafeModeBanner, StandingBar } from "./Bars";
import { Composer } from "./Composer";
import { ConversationPane } from "./ConversationPane";
import { Details } from "./Details";
import { Find } from "./Find";
import { Header } from "./Header";
import { CloseIcon } from "./icons";
import { Keys } from "./Keys";
import { Operations } from "./Operations";
import { OperationsSide } from "./ops/Side";
import { Palette } from "./Palette";
import { AppContext, IconButton, useMedia } from "./shared";
import { Sidebar } from "./Sidebar";
import { SignIn } from "./SignIn";

const PHONE = "(max-width: 760px)";
const SHEET = "(max-width: 1180px)";

export function Page(props: { app: App }): VNode {
  const { app } = props;
  const out = useComputed(() => app.connection.state.value === "signed-out");
  useTitle(app);
  return <AppContext.Provider value={app}>{out.value ? <SignIn /> : <Rooms app={app} />}</AppContext.Provider>;
}

function Rooms(props: { app: App }): VNode {
  const { app } = props;
  const phone = useMedia(PHONE);
  const sheet = useMedia(SHEET);
  const drawer = app.drawer.value;
  const operations = app.route.value.operations === true;
  const has_view = useComputed(() => app.conversation.view.value !== null);
  const details = app.details.value !== null && !operations && has_view.value;
  useShortcuts(app);
  useDrawerFocus(phone && drawer);
  return (
    <div
      class="rooms" data-connection={app.connection.state.value} data-away={app.connection.away.value} data-details={details} data-list={phone || app.preferences.list.value}
      data-room={operations ? "operations" : "conversation"}
    >
      {!operations && <a class="skip" href="#composer" onClick={(event) => { event.preventDefault(); document.getElementById("composer")?.focus(); }}>{t().bars.skip}</a>}
      <div class="side" inert={phone && !drawer}>{operations ? <OperationsSide /> : <Sidebar />}</div>
      {phone && drawer && <div class="shade" onClick={() => (app.drawer.value = false)} />}
      <main class="main" inert={(phone && drawer) || (sheet && details)}>
        {operations ? <Operations /> : (
          <>
            <Header />
            <Find />
            <AwayBar />
            <SafeModeBanner />
            <ConversationPane />
            {!app.conversation.missing.value && !app.route.value.nowhere && <><StandingBar /><Composer /></>}
          </>
        )}
      </main>
      {details && sheet && <div class="shade over" onClick={() => app.closeDetails()} />}
      {details && <Details sheet={sheet} />}
      <Announcer app={app} />
      <Palette />
      <Keys />
      <ToastView app={app} />
    </div>
  );
}

/** Says aloud, once, what the eyes see: not each piece of an answer, but its end. */
function Announcer(props: { app: App }): VNode {
  const [said, say] = useState("");
  const before = useRef<{ id: string; state: string } | null>(null);
  useSignalEffect(() => {
    const session = props.app.conversation.view.value?.session;
    const was = before.current;
    before.current = session ? { id: session.session_id, state: session.state } : null;
    if (!session || !was || was.id !== session.session_id || was.state === session.state) return;
    const words = t().conversation;
    if (session.state === "waiting") say(words.saidAsks(session.questions[0]?.text ?? ""));
    else if (session.state === "running") say(words.saidAnswering);
    else if (session.state === "idle") say(words.saidFinished);
  });
  return <div class="sr-only" role="status" data-testid="announcer">{said}</div>;
}

function ToastView(props: { app: App }): VNode {
  const toast = props.app.toast.value;
  return (
    <div class="toast-place" role="status">
      {toast && (
        <div class="toast" data-testid="toast">
          <span>{toast.text}</span>
          {toast.action && <button type="button" class="b small" onClick={() => { toast.action!.run(); props.app.hush(); }}>{toast.action.label}</button>}
          <IconButton label={t().common.close} onClick={() => props.app.hush()}><CloseIcon /></IconButton>
        </div>
      )}
    </div>
  );
}

function useTitle(app: App): void {
  useSignalEffect(() => {
    const session = app.conversation.view.value?.session;
    const runs = session?.state === "running" && !app.connection.away.value;
    const mark = runs ? "● " : session?.state === "waiting" ? "◆ " : "";
    const name = app.route.value.operations ? t().palette.operations : session ? titleOf(session, app.conversation.firstWords(session.session_id)) : null;
    const title = name ? `${app.route.value.operations ? "" : mark}${name} – Holdfast` : "Holdfast";
    if (document.title !== title) document.title = title;
  });
}

/** Escape closes what lies on top; with nothing on top it stops a running turn. Slash goes to the search, Ctrl K to the palette. */
function useShortcuts(app: App): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.isComposing) return;
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
      const command = event.ctrlKey || event.metaKey;
      if (command && event.key.toLowerCase() === "k" && !event.shiftKey && !event.altKey) {
        event.preventDefault();
        app.palette.value = !app.palette.value;
      } else if (command && event.key === ".") {
        event.preventDefault();
        app.toggleDetails();
      } else if (event.key === "/" && !typing && !command && !event.altKey) {
        event.preventDefault();
        app.showList();
        requestAnimationFrame(() => document.getElementById("search")?.focus());
      }
      if (event.key === "Escape") escape(app, event);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}

function escape(app: App, event: KeyboardEvent): void {
  if (document.querySelector("dialog[open]")) return;
  if (event.target instanceof HTMLInputElement) event.target.blur();
  else if (app.drawer.value) app.drawer.value = false;
  else if (app.toast.value) app.hush();
  else if (app.details.value !== null && !app.route.value.operations && app.conversation.view.value !== null) app.closeDetails();
  else {
    const view = app.conversation.view.value;
    const turn = view && liveTurn(view.session);
    if (turn && turn.state !== "waiting" && !app.route.value.operations) void app.conversation.stop();
  }
}

/** The focus goes into the drawer with the eyes, and back where it came from. */
function useDrawerFocus(open: boolean): void {
  useEffect(() => {
    if (!open) return;
    const before = document.activeElement;
    document.querySelector<HTMLElement>("#sidebar .new")?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, [open]);
}
