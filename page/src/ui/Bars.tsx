/** What people should know before they write: that the server is away or in safe mode, or that a message would not simply continue here. */

import type { VNode } from "preact";
import { t } from "../i18n";
import { standing } from "../words";
import { useApp, useOpen } from "./shared";

export function AwayBar(): VNode {
  const away = useApp().connection.away.value;
  return <div class="away" role="status" data-open={away} data-testid="away">{away && <p>{t().bars.away}</p>}</div>;
}

export function SafeModeBanner(): VNode | null {
  const app = useApp();
  if (!app.safeMode.on.value) return null;
  const ending = app.safeMode.ending.value;
  return (
    <section class="bar" role="status" data-testid="safe-mode">
      <p><strong>{t().bars.safeMode}</strong> {t().bars.safeModeWhy}</p>
      <button type="button" class="b small" data-testid="resume-all" disabled={ending} onClick={() => void app.safeMode.end()}>{ending ? t().bars.resuming : t().bars.resumeAll}</button>
    </section>
  );
}

export function StandingBar(): VNode | null {
  const app = useApp();
  const session = useOpen();
  const text = session && standing(session);
  if (!session || !text) return null;
  const resuming = app.resuming.value === session.session_id;
  const kind = session.suspended ? "suspended" : session.current ? "held" : "left";
  return (
    <section class="standing" role="status" data-testid="standing" data-kind={kind}>
      <p>{text}</p>
      <button type="button" class="b" data-testid="resume" disabled={resuming} onClick={() => void app.resume()}>{resuming ? t().bars.resuming : t().bars.resume}</button>
    </section>
  );
}
