/** What people have allowed for good, and what was decided about turns. */

import type { VNode } from "preact";
import { locale, t } from "../../i18n";
import type { LogLine } from "../../types";
import { clock, decision, moment, titleOf, visible, when } from "../../words";
import { ShapeIcon } from "../icons";
import { useApp } from "../shared";
import { Card, Empty, Open, Unread } from "./shared";

export function Rules(): VNode {
  const app = useApp();
  const words = t().ops;
  const rules = app.operations.rules.value;
  const titled = (session_id: string): string => {
    const known = app.list.sessions.value?.find((session) => session.session_id === session_id);
    return known ? titleOf(known) : words.itsConversation;
  };
  return (
    <Card id="rules" title={words.rules} testid="rules">
      {rules === null ? <Unread /> : rules.length === 0 ? <Empty>{words.rulesEmpty}</Empty> : (
        <ul class="people">
          {rules.map((rule) => (
            <li key={rule.rule_id}>
              <span class="k"><ShapeIcon shape="accepted" /></span>
              <p><code>{visible(rule.pattern)}</code></p>
              <p class="sub"><Open session={rule.session_id}>{titled(rule.session_id)}</Open> · {rule.by === "owner" ? t().conversation.byYou : rule.by} · {when(rule.created_at, new Date())}</p>
              <button type="button" class="b small" onClick={() => void app.operations.removeRule(rule.rule_id)}>{words.remove}</button>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

/** What is said of a decision besides: the server gives its reasons in English. */
function about(line: LogLine): string[] {
  const words = t().ops;
  return [line.attempt > 1 ? words.inAttempt(line.attempt) : "", line.why && (line.rule === null || locale() === "en") ? line.why : "", line.rule ? words.byRule(line.rule) : ""].filter(Boolean);
}

export function Log(): VNode {
  const app = useApp();
  const words = t().ops;
  const lines = app.operations.log.value;
  const tone = (what: string, outcome: string | null): string => (what === "interrupted" || what === "left" ? "amber" : outcome === "failed" ? "red" : what === "resumed" ? "kelp" : "");
  return (
    <Card id="log" title={words.log} sub={words.logSub} testid="log">
      {lines === null ? <Unread /> : lines.length === 0 ? <Empty>{words.logEmpty}</Empty> : (
        <ol class="log" tabIndex={0} aria-label={words.log}>
          {lines.map((line, index) => (
            <li key={index}>
              <time dateTime={line.at} title={moment(line.at)}>{clock(line.at, true)}</time> <b class={tone(line.what, line.outcome)}>{decision(line)}</b>{" "}
              <Open session={line.session_id}>{titleOf(line)}</Open>{about(line).map((each) => ` · ${each}`)}
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}
