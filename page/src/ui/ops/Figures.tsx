/** How much there is of everything, now and in the last hour. */

import type { VNode } from "preact";
import { locale, t } from "../../i18n";
import { begun, newest, spark, thinned } from "../../plots";
import { duration, size } from "../../words";
import { useApp, useNow } from "../shared";

const POINTS = 60;
/** A line of two minutes is drawn as wide as one of an hour. */
const SHORTEST = 12;
const WIDTH = 92;
const HEIGHT = 30;

export function Figures(): VNode {
  const app = useApp();
  const words = t().ops.figures;
  const now = useNow(true, 1000);
  const status = app.safeMode.status.value;
  const { inbox, outbox, attention, series } = app.operations;
  const measured = (name: string): (number | null)[] => series.value?.series[name] ?? [];
  const retiring = status?.retiring.reduce((sum, each) => sum + each.running_turns, 0) ?? 0;
  const unknown = outbox.value?.deliveries.filter((each) => each.state === "unknown" || each.state === "repeating").length ?? 0;
  const needs = attention.value;
  const oldest = needs?.[0]?.since;
  const since = (at: string): string => duration(now - Date.parse(at));
  return (
    <>
      <ul class="figs">
        <Figure title={words.running} value={count(status?.running_turns)} foot={retiring > 0 ? words.retiring(retiring) : ""} series={measured("running_turns")} />
        <Figure title={words.inboxLag} value={time(newest(measured("inbox_lag_ms")))} foot={words.inboxLagFoot} series={measured("inbox_lag_ms")} />
        <Figure title={words.firstText} value={time(newest(measured("first_text_ms")))} foot={words.firstTextFoot} series={measured("first_text_ms")} />
        <Figure title={words.outbox} value={count(outbox.value?.deliveries.length)} foot={unknown > 0 ? words.unknown(unknown) : outbox.value ? words.allDelivered : ""} series={measured("outbox")} warns={unknown > 0} />
        <Figure title={words.needs} value={count(needs?.length)} foot={oldest ? words.oldest(since(oldest)) : needs ? words.nobody : ""} needs={(needs?.length ?? 0) > 0} />
      </ul>
      <details class="more-figs" data-testid="more-figures">
        <summary>{words.more}</summary>
        <ul class="figs">
          <Figure title={words.inbox} value={count(inbox.value?.waiting)} foot={inbox.value?.oldest_at ? words.waits(since(inbox.value.oldest_at)) : inbox.value ? words.nothingWaits : ""} series={measured("inbox")} />
          <Figure title={words.held} value={count(status?.suspended)} foot={status && status.pending > 0 ? words.pending(status.pending) : ""} />
          <Figure title={words.commit} value={time(newest(measured("commit_ms")))} foot={words.commitFoot} series={measured("commit_ms")} />
          <Figure title={words.lag} value={time(newest(measured("loop_lag_ms")))} foot={words.lagFoot} series={measured("loop_lag_ms")} />
          <Figure title={words.memory} value={bytes(newest(measured("memory_bytes")))} foot={status ? words.memoryFoot(status.pid) : ""} series={measured("memory_bytes")} />
        </ul>
      </details>
    </>
  );
}

function count(value: number | undefined): string | null {
  return value === undefined ? null : value.toLocaleString(locale());
}

function time(ms: number | null): string | null {
  if (ms === null) return null;
  return ms < 10 ? t().ago.milliseconds(ms.toLocaleString(locale(), { maximumFractionDigits: 1 })) : duration(ms);
}

function bytes(value: number | null): string | null {
  return value === null ? null : size(value);
}

/** What is not known is a dash, not 0. */
function Figure(props: { title: string; value: string | null; foot: string; series?: (number | null)[]; warns?: boolean; needs?: boolean }): VNode {
  return (
    <li class={props.needs ? "card fig needs" : "card fig"}>
      <h2>{props.title}</h2>
      <p class="v">{props.value ?? t().ops.unknown}</p>
      <p class={props.warns ? "fig-foot amber" : "fig-foot"}>{props.foot}</p>
      {props.series && <Spark values={props.series} />}
    </li>
  );
}

function Spark(props: { values: (number | null)[] }): VNode | null {
  const paths = spark(thinned(begun(props.values, SHORTEST), POINTS), WIDTH, HEIGHT);
  if (paths.length === 0) return null;
  return <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">{paths.map((path) => <path key={path} d={path} />)}</svg>;
}
