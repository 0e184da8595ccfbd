import type { VNode } from "preact";
import { t } from "../i18n";
import { Mark } from "./icons";
import { Copy, useApp } from "./shared";

/** A long answer, long enough to kill the process in the middle of it. */
const LONG = "count 120 0.25";

/** Nothing is here yet. With the agent that comes along, three things to try; the third names the process to kill. */
export function Welcome(): VNode {
  const app = useApp();
  const words = t().welcome;
  const status = app.safeMode.status.value;
  const demo = status !== null && (status.models ?? []).length === 0;
  if (status !== null && !demo) return <div class="welcome"><Mark size={52} /><h2>{words.modelTitle}</h2><p>{words.modelLead}</p></div>;
  return (
    <div class="welcome">
      <Mark size={52} />
      <h2>{words.title}</h2>
      <p>{words.lead}</p>
      <ol class="tries">
        {words.tries.map(([text, title, what]) => (
          <li key={text}>
            <button type="button" class="try" data-testid="suggestion" onClick={() => app.send(text, null, [])}><b>{title}</b><span><code>{text}</code> {what}</span></button>
          </li>
        ))}
        <li class="try">
          <b>{words.killTitle}</b>
          <span>
            <button type="button" class="link" data-testid="suggestion" onClick={() => app.dare(LONG)}>{words.killStart}</button>. {status === null ? words.killUnknown : words.kill}
            {status !== null && <> <code data-testid="kill">kill -9 {status.pid}</code> <Copy text={`kill -9 ${status.pid}`} label={t().common.copy} word /></>}
          </span>
        </li>
      </ol>
    </div>
  );
}
