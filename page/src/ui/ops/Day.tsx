/** The last hours as a picture. */

import type { VNode } from "preact";
import { locale, t } from "../../i18n";
import type { Timeline } from "../../types";
import { clock, duration } from "../../words";
import { useApp } from "../shared";
import { Card, Empty } from "./shared";

const WIDTH = 1130;
const LEFT = 86;
const RIGHT = 1118;

/** The last hours: which process served when, and how turns ended. */
export function Day(): VNode {
  const app = useApp();
  const words = t().ops;
  const { timeline, hours } = app.operations;
  const choose = (
    <fieldset class="seg">
      <legend class="sr-only">{words.day}</legend>
      {[1, 24, 168].map((each) => <label key={each}><input type="radio" name="hours" checked={hours.value === each} onChange={() => app.operations.show(each)} /><span>{words.hours[each]}</span></label>)}
    </fieldset>
  );
  return <Card id="day" title={words.day} sub={words.daySub} right={choose} testid="day">{timeline.value ? <DayPlot timeline={timeline.value} hours={hours.value} /> : <Empty>{t().details.loading}</Empty>}</Card>;
}

function DayPlot(props: { timeline: Timeline; hours: number }): VNode {
  const words = t().ops;
  const { lives, turns } = props.timeline;
  const from = Date.parse(turns.since);
  const to = from + turns.bucket_s * 1000 * turns.completed.length;
  const x = (at: number): number => LEFT + ((Math.min(to, Math.max(from, at)) - from) / (to - from)) * (RIGHT - LEFT);
  const shown = lives.filter((life) => life.until === null || Date.parse(life.until) > from).slice(-8);
  const rows = shown.length;
  const base = 40 + rows * 24;
  const bars = base + 92;
  const most = Math.max(4, ...turns.completed.map((_, index) => turns.completed[index]! + turns.failed[index]! + turns.other[index]! + turns.interrupted[index]!));
  const high = (count: number): number => (count / most) * 70;
  const sum = (list: number[]): number => list.reduce((all, each) => all + each, 0);
  const [completed, failed, other, interrupted] = [sum(turns.completed), sum(turns.failed), sum(turns.other), sum(turns.interrupted)];
  const step = props.hours === 1 ? 600_000 : props.hours === 24 ? 3 * 3_600_000 : 86_400_000;
  const ticks: number[] = [];
  for (let at = Math.ceil(from / step) * step; at < to - step / 3; at += step) ticks.push(at);
  const deaths = shown.filter((life) => life.end === "crash").length;
  const width = (RIGHT - LEFT) / turns.completed.length - 2;
  return (
    <div class="plot long" tabIndex={0} role="region" aria-label={words.day} ref={(box) => { if (box && box.scrollLeft === 0) box.scrollLeft = box.scrollWidth; }}>
      <svg viewBox={`0 0 ${WIDTH} ${bars + 30}`} role="img" aria-label={words.timelineLabel(completed + failed + other, deaths)}>
        {ticks.map((at) => <><path class="g" d={`M${x(at)} 20V${bars}`} /><text x={x(at)} y="12" text-anchor="middle">{props.hours > 24 ? new Date(at).toLocaleDateString(locale(), { weekday: "short" }) : clock(new Date(at).toISOString())}</text></>)}
        <text x={RIGHT} y="12" text-anchor="end" class="strong">{words.nowWord}</text>
        <text x="0" y="44" class="strong">{words.processes}</text>
        {shown.map((life, index) => {
          const [start, end] = [x(Date.parse(life.started_at)), life.until === null ? RIGHT : x(Date.parse(life.until))];
          const y = 30 + index * 24;
          const told = life.until === null || life.end === null ? "" : (life.end === "crash" ? words.crashed : words.stopped)(clock(life.until), life.pid);
          const room = end - start > 90;
          return (
            <>
              <rect x={start} y={y} width={Math.max(3, end - start)} height="18" rx="5" class={life.until === null ? "f-kelp-soft" : "f-faint"} />
              {room ? <text x={start + 9} y={y + 13} class="strong">{life.pid}</text> : <text x={start - 8} y={y + 13} text-anchor="end" class="strong">{life.pid}</text>}
              {told !== "" && (end > WIDTH / 2 ? <text x={Math.max(240, (room ? end : start - 52) - 12)} y={y + 13} text-anchor="end" class={life.end === "crash" ? "t-amber" : ""}>{told}</text> : <text x={end + 12} y={y + 13} class={life.end === "crash" ? "t-amber" : ""}>{told}</text>)}
            </>
          );
        })}
        <text x="0" y={bars - 62} class="strong">{words.turns}</text>
        <text x="0" y={bars - 47}>{words.per(duration(turns.bucket_s * 1000))}</text>
        <path class="g" d={`M${LEFT} ${bars}H${RIGHT}`} /><text x={LEFT - 8} y={bars + 4} text-anchor="end">0</text>
        <path class="g" d={`M${LEFT} ${bars - high(most)}H${RIGHT}`} /><text x={LEFT - 8} y={bars - high(most) + 4} text-anchor="end">{most}</text>
        {turns.completed.map((_, index) => {
          const left = LEFT + (index / turns.completed.length) * (RIGHT - LEFT) + 1;
          let y = bars;
          return ([[turns.completed[index]!, "f-kelp-mid"], [turns.other[index]!, "f-faint"], [turns.interrupted[index]!, "f-amber"], [turns.failed[index]!, "f-red"]] as const).map(([count, kind]) => {
            if (count === 0) return null;
            y -= Math.max(2, high(count));
            return <rect x={left} y={y} width={width} height={Math.max(1.5, high(count) - 0.6)} rx="1.2" class={kind} />;
          });
        })}
        <text x={RIGHT} y={bars + 22} text-anchor="end">{words.totals(completed + failed + other, completed, failed, interrupted)}</text>
      </svg>
      <div class="legend" aria-hidden="true"><span><i class="l-kelp-mid" />{words.completed}</span><span><i class="l-amber" />{words.interrupted}</span><span><i class="l-red" />{words.failed}</span><span><i class="l-faint" />{words.otherEnds}</span></div>
    </div>
  );
}
