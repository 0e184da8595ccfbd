import { useComputed, useSignalEffect } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { App } from "../app";
import { liveTurn } from "../log";
import { titleOf } from "../words";
import { SafeModeBanner, StandingBar } from "./Bars";
import { Composer } from "./Composer";
import { ConversationPane } from "./ConversationPane";
import { Header } from "./Header";
import { CloseIcon } from "./icons";
import { AppContext, IconButton } from "./shared";
import { Sidebar } from "./Sidebar";
import { SignIn } from "./SignIn";

const PHONE = "(max-width: 760px)";

export function Page(props: { app: App }): VNode {
  const { app } = props;
  const out = useComputed(() => app.connection.state.value === "signed-out");
  useTitle(app);
  return <AppContext.Provider value={app}>{out.value ? <SignIn /> : <Rooms app={app} />}</AppContext.Provider>;
}

function Rooms(props: { app: App }): VNode {
  const { app } = props;
  const phone = usePhone();
  const drawer = app.drawer.value;
  useEscape(app);
  useDrawerFocus(phone && drawer);
  return (
    <div class="rooms" data-connection={app.connection.state.value} data-away={app.connection.away.value}>
      <a class="skip" href="#composer" onClick={(event) => { event.preventDefault(); document.getElementById("composer")?.focus(); }}>Skip to the message field</a>
      <div class="side" inert={phone && !drawer}><Sidebar /></div>
      {phone && drawer && <div class="shade" onClick={() => (app.drawer.value = false)} />}
      <main class="main" inert={phone && drawer}>
        <Header />
        <Away app={app} />
        <SafeModeBanner />
        <ConversationPane />
        {!app.conversation.missing.value && !app.route.value.nowhere && <><StandingBar /><Composer /></>}
      </main>
      <Announcer app={app} />
      <ToastView app={app} />
    </div>
  );
}

function Away(props: { app: App }): VNode {
  const away = props.app.connection.away.value;
  return (
    <div class="away" role="status" data-open={away} data-testid="away">
      {away && <p>Holdfast is not answering. You see the last known state; what you write is saved and sent when it is back.</p>}
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
    if (session.state === "waiting") say(`Holdfast asks: ${session.questions[0]?.text ?? ""}`);
    else if (session.state === "running") say("Holdfast is answering.");
    else if (session.state === "idle") say("The answer is finished.");
  });
  return <div class="sr-only" role="status">{said}</div>;
}

function ToastView(props: { app: App }): VNode {
  const toast = props.app.toast.value;
  return (
    <div class="toast-place" role="status">
      {toast && (
        <div class="toast">
          <span>{toast.text}</span>
          {toast.action && <button type="button" class="small-button" onClick={() => { toast.action!.run(); props.app.hush(); }}>{toast.action.label}</button>}
          <IconButton label="Close" onClick={() => props.app.hush()}><CloseIcon /></IconButton>
        </div>
      )}
    </div>
  );
}

function useTitle(app: App): void {
  useSignalEffect(() => {
    const session = app.conversation.view.value?.session;
    const runs = session?.state === "running" && !app.connection.away.value;
    const mark = runs ? "● " : session?.state === "waiting" ? "? " : "";
    document.title = session ? `${mark}${titleOf(session, app.conversation.firstWords(session.session_id))} – Holdfast` : "Holdfast";
  });
}

/** Escape closes what lies on top; with nothing on top it stops a running turn. Slash goes to the search. */
function useEscape(app: App): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.isComposing) return;
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        app.drawer.value = window.matchMedia(PHONE).matches;
        document.getElementById("search")?.focus();
      }
      if (event.key !== "Escape") return;
      if (event.target instanceof HTMLInputElement) event.target.blur();
      else if (app.drawer.value) app.drawer.value = false;
      else if (app.toast.value) app.hush();
      else {
        const view = app.conversation.view.value;
        const turn = view && liveTurn(view.session);
        if (turn && turn.state !== "waiting") void app.conversation.stop();
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}

function usePhone(): boolean {
  const [phone, setPhone] = useState(() => window.matchMedia(PHONE).matches);
  useEffect(() => {
    const query = window.matchMedia(PHONE);
    const changed = (): void => setPhone(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return phone;
}

/** The focus goes into the drawer with the eyes, and back where it came from. */
function useDrawerFocus(open: boolean): void {
  useEffect(() => {
    if (!open) return;
    const before = document.activeElement;
    document.querySelector<HTMLElement>("[data-testid=new-conversation]")?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, [open]);
}
