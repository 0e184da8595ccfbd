/** What models used and cost: by day, by model, by conversation. */

import type { VNode } from "preact";
import { locale, t } from "../../i18n";
import { scale, stacks } from "../../plots";
import type { UsageReport, Usage as Used } from "../../types";
import { price, titleOf } from "../../words";
import { useApp } from "../shared";
import { Card, Empty, Open, Table, Unread } from "./shared";

const MODELS = 4;
const FILLS = ["f-kelp-mid", "f-deep-mid", "f-amber", "f-faint"] as const;
const MARKS = ["l-kelp-mid", "l-deep-mid", "l-amber", "l-faint"] as const;
/** As wide as its card in a narrow window, so that its words are not smaller than others. */
const WIDTH = 340;
const FOOT = 122;
const TALL = 90;

export function Usage(): VNode {
  const { operations } = useApp();
  const words = t().ops;
  const report = operations.usage.value;
  const choose = (
    <fieldset class="seg">
      <legend class="sr-only">{words.usage}</legend>
      {[7, 30].map((each) => <label key={each}><input type="radio" name="days" checked={operations.days.value === each} onChange={() => operations.showDays(each)} /><span>{words.days(each)}</span></label>)}
    </fieldset>
  );
  return (
    <Card id="usage" title={words.usage} sub={report ? total(report.total) : ""} right={choose} testid="usage">
      {report === null ? <Unread /> : report.total.requests === 0 ? <Empty>{words.usageEmpty}</Empty> : <div class="used"><Plot report={report} /><Shares report={report} /></div>}
    </Card>
  );
}

function total(used: Used): string {
  if (used.requests === 0) return "";
  return [used.cost === null ? "" : price(used.cost), t().ops.tokens(tokens(used))].filter(Boolean).join(" · ");
}

function tokens(used: Used): string {
  return (used.input + used.output).toLocaleString(locale(), { notation: "compact" });
}

/** Money where every day has a price, else tokens. */
function Plot(props: { report: UsageReport }): VNode {
  const words = t().ops;
  const { report } = props;
  const money = report.days.every((day) => day.usage.cost !== null);
  const value = (used: Used): number => (money ? used.cost! : used.input + used.output);
  const told = (amount: number): string => (money ? price(amount) : amount.toLocaleString(locale(), { notation: "compact" }));
  const names = report.models.map((each) => each.model ?? words.removed);
  const days = stacks(report.rows.map((row) => ({ day: row.day, name: row.model ?? words.removed, value: value(row.usage) })), names, MODELS, words.otherModels);
  const shown = [...new Set(days.flatMap((day) => day.parts.map((part) => part.name)))].sort((a, b) => place(names, a) - place(names, b));
  const top = scale(Math.max(...days.map((day) => day.total)));
  const step = (WIDTH - 42) / Math.max(7, days.length);
  return (
    <div class="plot">
      <svg viewBox={`0 0 ${WIDTH} 150`} role="img" aria-label={`${words.usageLabel}: ${days.map((day) => `${day.day} ${told(day.total)}`).join(", ")}`}>
        {[0, 0.5, 1].map((part) => <><path class="g" d={`M34 ${FOOT - part * TALL}H${WIDTH - 4}`} />{part > 0 && <text x="30" y={FOOT - part * TALL + 4} text-anchor="end">{told(top * part)}</text>}</>)}
        {days.map((day, index) => {
          const left = 42 + index * step;
          const middle = left + step * 0.275;
          let y = FOOT;
          return (
            <>
              {day.parts.map((part) => {
                const high = Math.max(1, (part.value / top) * TALL);
                y -= high;
                return <rect key={part.name} x={left} y={y} width={step * 0.55} height={Math.max(0.6, high - 0.6)} rx="2" class={FILLS[Math.min(shown.indexOf(part.name), FILLS.length - 1)]} />;
              })}
              {days.length <= 7 && <text x={middle} y={y - 6} text-anchor="middle" class="strong">{told(day.total)}</text>}
              {(days.length <= 7 || index % 5 === 0) && <text x={middle} y="140" text-anchor="middle">{new Date(`${day.day}T12:00`).toLocaleDateString(locale(), days.length <= 7 ? { weekday: "short" } : { day: "numeric", month: "numeric" })}</text>}
            </>
          );
        })}
      </svg>
      <div class="legend" aria-hidden="true">{shown.map((name, index) => <span key={name}><i class={MARKS[Math.min(index, MARKS.length - 1)]} />{name}</span>)}</div>
    </div>
  );
}

function place(names: string[], name: string): number {
  const found = names.indexOf(name);
  return found === -1 ? names.length : found;
}

/** The models, and the conversations that used most. */
function Shares(props: { report: UsageReport }): VNode {
  const words = t().ops;
  const { report } = props;
  const cells = (used: Used, turns: number): VNode => <><td class="r">{turns}</td><td class="r">{tokens(used)}</td><td class="r">{used.cost === null ? words.unknown : price(used.cost)}</td></>;
  const head = (name: string): VNode => <thead><tr><th>{name}</th><th class="r">{words.turns}</th><th class="r">{words.tokensHead}</th><th class="r">{words.price}</th></tr></thead>;
  return (
    <div class="shares">
      <Table label={words.byModel}>
        {head(words.byModel)}
        <tbody>{report.models.map((each) => <tr key={each.model} data-testid="model-share"><td class="t">{each.model ?? words.removed}</td>{cells(each.usage, each.turns)}</tr>)}</tbody>
      </Table>
      <Table label={words.byConversation}>
        {head(words.byConversation)}
        <tbody>{report.conversations.slice(0, 5).map((each) => <tr key={each.session_id}><td class="t"><Open session={each.session_id}>{titleOf(each)}</Open></td>{cells(each.usage, each.turns)}</tr>)}</tbody>
      </Table>
    </div>
  );
}
