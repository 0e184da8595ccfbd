/** The state as a sentence, and what can be done to it. What interrupts somebody, or cannot be undone, asks first and says what will happen. */

import type { VNode } from "preact";
import { t } from "../../i18n";
import type { Order } from "../../operations";
import type { Status, Timeline } from "../../types";
import { before, clock, duration, when } from "../../words";
import { useGate } from "../Gate";
import { MenuIcon, PauseIcon, PlayIcon, RestartIcon, ShapeIcon, StopIcon } from "../icons";
import { useDialog } from "../Keys";
import { IconButton, useApp } from "../shared";
import { Told } from "./shared";

export function State(): VNode {
  const app = useApp();
  const words = t().ops;
  const sign = useGate();
  const { operations } = app;
  const status = app.safeMode.status.value;
  const off = operations.busy.value || status === null || app.connection.away.value;
  const ask = (what: Exclude<Order, "unpause">): void => {
    const turns = status?.running_turns ?? 0;
    const says = what === "pause" ? words.ask.pauseSays(turns) : what === "restart" ? words.ask.restartSays(turns, status?.supervisor ?? "plain") : words.ask.stopSays(turns);
    operations.asking.value = { title: words.ask[what], says, yes: words[what], danger: what === "stop", run: () => operations.administer(what) };
  };
  return (
    <div class="gatebar" id="ops-overview" tabIndex={-1}>
      <IconButton label={t().list.show} class="drawer-open" testid="show-list" onClick={() => app.showList()}><MenuIcon /></IconButton>
      <div>
        <h1><span class={`st ${sign.tone}`}><ShapeIcon shape={sign.shape} /></span>{sign.text}</h1>
        <p class="sub" data-testid="state-sentence">{status && sentence(status, operations.timeline.value)}</p>
      </div>
      <div class="acts-bar">
        {status?.gateway_state === "paused"
          ? <button type="button" class="b" data-testid="unpause" disabled={off} onClick={() => void operations.administer("unpause")}><PlayIcon />{words.unpause}</button>
          : <button type="button" class="b" data-testid="pause" disabled={off} onClick={() => ask("pause")}><PauseIcon />{words.pause}</button>}
        <button type="button" class="b" data-testid="restart" disabled={off} onClick={() => ask("restart")}><RestartIcon />{words.restart}</button>
        <button type="button" class="b danger" data-testid="stop-gateway" disabled={off} onClick={() => ask("stop")}><StopIcon />{words.stop}</button>
      </div>
    </div>
  );
}

function sentence(status: Status, timeline: Timeline | null): string {
  const words = t().ops;
  const said = [words.sentence(status.version, status.pid, when(status.started_at, new Date()))];
  const { crashed, handedOver, cost } = before(timeline);
  if (crashed > 0) said.push(words.lastCrash(crashed));
  else if (handedOver) said.push(words.lastHandOver);
  if (cost) said.push(words.lastCost(cost.interrupted, cost.resumed, duration(cost.took_ms)));
  if (status.paused_by) said.push(words.paused(status.paused_by, clock(status.paused_until ?? "")));
  if (status.retiring.length > 0) said.push(words.retiring(status.retiring.length));
  if (status.degraded) said.push(words.degradedBecause(status.degraded));
  return said.join(" ");
}

export function Confirm(): VNode {
  const { asking } = useApp().operations;
  const asked = asking.value;
  const dialog = useDialog(asked !== null, () => (asking.value = null));
  return (
    <dialog class="dialog" ref={dialog} aria-labelledby="confirm-title" data-testid="confirm">
      {asked && (
        <div>
          <h2 id="confirm-title">{asked.title}</h2>
          <p><Told text={asked.says} /></p>
          <div class="foot">
            <button type="button" class="b" autofocus onClick={() => dialog.current?.close()}>{t().common.cancel}</button>
            <button type="button" class={asked.danger ? "b danger" : "b kelp"} data-testid="confirm-yes" onClick={() => { asking.value = null; void asked.run(); }}>{asked.yes}</button>
          </div>
        </div>
      )}
    </dialog>
  );
}
