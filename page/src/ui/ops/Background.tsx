/** What runs in the background, and what starts by itself. */

import type { VNode } from "preact";
import { t } from "../../i18n";
import type { BackgroundProcess, Schedule } from "../../types";
import { clock, duration, moment, platformOf, visible, when } from "../../words";
import { PlatformIcon, StateSign } from "../icons";
import { useApp, useNow } from "../shared";
import { Card, Empty, Open, Table, Unread } from "./shared";

export function Schedules(): VNode {
  const words = t().ops.schedules;
  const found = useApp().operations.schedules.value;
  return (
    <Card id="schedules" title={words.title} testid="schedules">
      {found === null ? <Unread /> : found.length === 0 ? <Empty>{words.empty}</Empty> : (
        <Table label={words.title}>
          <thead><tr><th /><th>{words.what}</th><th>{words.when}</th><th class="r">{words.next}</th><th><span class="sr-only">{t().ops.action}</span></th></tr></thead>
          <tbody>{found.map((each) => <Row key={each.schedule_id} schedule={each} />)}</tbody>
        </Table>
      )}
    </Card>
  );
}

function Row(props: { schedule: Schedule }): VNode {
  const { operations } = useApp();
  const words = t().ops.schedules;
  const { schedule } = props;
  const now = useNow(true, 5000);
  const due = Date.parse(schedule.due_at) - now;
  const paused = schedule.paused_at !== null;
  const remove = (): void => {
    operations.asking.value = { title: words.removeAsk, says: words.removeSays(visible(schedule.text)), yes: words.remove, danger: true, run: () => operations.removeSchedule(schedule.schedule_id) };
  };
  return (
    <tr data-testid="schedule" data-paused={paused}>
      <td><PlatformIcon platform={platformOf(schedule.session_key)} small /></td>
      <td class="t two-lines" title={visible(schedule.text)}><Open session={schedule.session_id}>{visible(schedule.text)}</Open></td>
      <td class="wrap">{words.planned(schedule, (seconds) => duration(seconds * 1000))}{schedule.skipped && <span class="dim"> {words.skipped(schedule.skipped)}</span>}</td>
      <td class="r" title={moment(paused ? schedule.paused_at! : schedule.due_at)}>{paused ? <StateSign sign={{ shape: "suspended", tone: "amber", text: words.paused }} /> : due > 86_400_000 ? when(schedule.due_at, new Date(now)) || clock(schedule.due_at) : due > 0 ? words.in(duration(due)) : words.now}</td>
      <td>
        <span class="acts-row">
          <button type="button" class="b small" data-testid="pause-schedule" onClick={() => void operations.pauseSchedule(schedule.schedule_id, !paused)}>{paused ? words.continue : words.pause}</button>
          <button type="button" class="b small" data-testid="remove-schedule" onClick={remove}>{words.remove}</button>
        </span>
      </td>
    </tr>
  );
}

/** Nothing where the server keeps no processes. */
export function Processes(): VNode | null {
  const words = t().ops.background;
  const found = useApp().operations.processes.value;
  if (found === null) return null;
  return (
    <Card id="processes" title={words.title} testid="processes">
      {found.length === 0 ? <Empty>{words.empty}</Empty> : (
        <Table label={words.title}>
          <thead><tr><th>{words.command}</th><th class="r">{t().ops.forTime}</th><th><span class="sr-only">{t().ops.action}</span></th></tr></thead>
          <tbody>{found.map((each) => <ProcessRow key={each.process_id} process={each} />)}</tbody>
        </Table>
      )}
    </Card>
  );
}

function ProcessRow(props: { process: BackgroundProcess }): VNode {
  const { operations } = useApp();
  const words = t().ops.background;
  const { process } = props;
  const now = useNow(true, 1000);
  const end = (): void => {
    operations.asking.value = { title: words.endAsk, says: words.endSays(visible(process.command)), yes: words.end, danger: true, run: () => operations.endProcess(process.process_id) };
  };
  return (
    <tr data-testid="process">
      <td class="t" title={visible(process.command)}><Open session={process.session_id}><code>{visible(process.command)}</code></Open></td>
      <td class="r" title={moment(process.started_at)}>{duration(now - Date.parse(process.started_at))}</td>
      <td><button type="button" class="b small" data-testid="end-process" onClick={end}>{words.end}</button></td>
    </tr>
  );
}
