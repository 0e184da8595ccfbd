/** How much there is of everything, now and in the last hour. */

import type { VNode } from "preact";
import { locale, t } from "../../i18n";
import { begun, happened, newest, spark, thinned } from "../../plots";
import { clock, duration, size } from "../../words";
import { useApp, useNow } from "../shared";

const POINTS = 60;
/** For so many measurements a figure counts as one of now. */
const RECENT = 3;
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
  const at = (ago: number, many: number): string => clock(new Date(Date.parse(series.value!.since) + (many - 1 - ago) * series.value!.step_s * 1000).toISOString());
  return (
    <>
      <ul class="figs">
        <Figure title={words.running} value={count(status?.running_turns)} foot={retiring > 0 ? words.retiring(retiring) : ""} series={measured("running_turns")} />
        <Ended title={words.inboxLag} foot={words.inboxLagFoot} series={measured("inbox_lag_ms")} at={at} />
        <Ended title={words.firstText} foot={words.firstTextFoot} series={measured("first_text_ms")} at={at} />
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
      <p class="v"><span>{props.value ?? t().ops.unknown}</span>{props.series && <Spark values={props.series} />}</p>
      <p class={props.warns ? "fig-foot amber" : "fig-foot"}>{props.foot}</p>
    </li>
  );
}

/** Measured when turns end. After a while without any, when that was is said: a dash would hide what is known. */
function Ended(props: { title: string; foot: string; series: (number | null)[]; at: (ago: number, many: number) => string }): VNode {
  const found = happened(props.series);
  const old = found !== null && found.ago >= RECENT;
  return <Figure title={props.title} value={time(found?.newest ?? null)} foot={old ? t().ops.figures.measured(props.at(found.ago, props.series.length)) : props.foot} series={found?.values ?? []} />;
}

function Spark(props: { values: (number | null)[] }): VNode | null {
  const paths = spark(thinned(begun(props.values, SHORTEST), POINTS), WIDTH, HEIGHT);
  if (props.values.filter((value) => value !== null).length < 2) return null; // A dot is no line.
  return <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">{paths.map((path) => <path key={path} d={path} />)}</svg>;
}
