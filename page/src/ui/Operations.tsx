/** The operator's view: how the gateway is, what runs, who is waited for, how the last hours went. */

import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import { AwayBar, SafeModeBanner } from "./Bars";
import { Processes, Schedules } from "./ops/Background";
import { Boxes, People, Platforms } from "./ops/Chats";
import { Day } from "./ops/Day";
import { Figures } from "./ops/Figures";
import { Log, Rules } from "./ops/Past";
import { Confirm, State } from "./ops/State";
import { Usage } from "./ops/Usage";
import { Needs, Running } from "./ops/Work";
import { useApp } from "./shared";

export function Operations(): VNode {
  const app = useApp();
  useEffect(() => app.operations.look(), []);
  return (
    <>
      <AwayBar />
      <SafeModeBanner />
      <div class="ops" data-testid="operations">
        <State />
        <Figures />
        <Day />
        <div class="two">
          <div class="stack"><Running /><Boxes /><Platforms /><Processes /><Schedules /></div>
          <div class="stack"><Needs /><People /><Rules /></div>
        </div>
        <Usage />
        <Log />
      </div>
      <Confirm />
    </>
  );
}
