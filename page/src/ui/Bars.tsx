/** What people should know before they write: that the gateway is in safe mode, or that a message would not simply continue here. */

import type { VNode } from "preact";
import { standing } from "../words";
import { useApp } from "./shared";

export function SafeModeBanner(): VNode | null {
  const app = useApp();
  if (!app.safeMode.on.value) return null;
  const ending = app.safeMode.ending.value;
  return (
    <section class="safe-mode" role="status" data-testid="safe-mode">
      <p><strong>Safe mode</strong> after several crashes in a row: interrupted work is not resumed automatically. Messages are answered as usual.</p>
      <button type="button" class="small-button" data-testid="resume-all" disabled={ending} onClick={() => void app.safeMode.end()}>{ending ? "Resuming…" : "Resume all"}</button>
    </section>
  );
}

export function StandingBar(): VNode | null {
  const app = useApp();
  const session = app.route.value.session === null ? null : (app.conversation.view.value?.session ?? null);
  const text = session && standing(session);
  if (!session || !text) return null;
  const resuming = app.resuming.value === session.session_id;
  const kind = session.suspended ? "suspended" : session.current ? "held" : "left";
  return (
    <section class="standing" role="status" data-testid="standing" data-kind={kind}>
      <p>{text}</p>
      <button type="button" class="small-button" data-testid="resume" disabled={resuming} onClick={() => void app.resume()}>{resuming ? "Resuming…" : "Resume"}</button>
    </section>
  );
}
