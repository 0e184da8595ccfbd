/** What stands in place of the list while somebody looks at operations: the way back, and the sections with how much there is in each. */

import type { ComponentChildren, VNode } from "preact";
import { t } from "../../i18n";
import { Gate } from "../Gate";
import { BackIcon, ChipIcon, ClockIcon, CloseIcon, CoinIcon, DiamondIcon, InboxIcon, LogIcon, Mark, PlugIcon, PulseIcon, ShieldIcon, SideIcon, TerminalIcon } from "../icons";
import { Settings } from "../Settings";
import { IconButton, plainClick, useApp } from "../shared";

export function OperationsSide(): VNode {
  const app = useApp();
  const words = t().ops;
  const { turns, attention, inbox, outbox, platforms, processes, schedules, rules } = app.operations;
  const boxes = (inbox.value?.waiting ?? 0) + (outbox.value?.deliveries.length ?? 0);
  const away = platforms.value?.platforms.some((each) => each.state === "away" || each.state === "refused") ?? false;
  return (
    <aside class="sidebar" id="sidebar" aria-label={words.title} data-open={app.drawer.value}>
      <div class="sidebar-head">
        <a class="brand" href="/" onClick={plainClick(() => app.go(null))}><Mark /><span>Holdfast</span></a>
        <Settings />
        <IconButton label={t().list.hide} class="list-hide" testid="hide-list" onClick={() => app.hideList()}><SideIcon /></IconButton>
        <IconButton label={t().list.close} class="drawer-close" onClick={() => (app.drawer.value = false)}><CloseIcon /></IconButton>
      </div>
      <a class="new" href="/" data-testid="to-conversations" onClick={plainClick(() => app.go(null))}><BackIcon /><span>{words.back}</span></a>
      <nav class="list sections" aria-label={words.title}>
        <h2>{words.title}</h2>
        <Section to="overview" icon={<PulseIcon />} name={words.sections.overview} />
        <Section to="turns" icon={<TerminalIcon />} name={words.sections.turns} count={turns.value?.length} />
        <Section to="needs" icon={<DiamondIcon />} name={words.sections.needs} count={attention.value?.length} amber />
        <Section to="boxes" icon={<InboxIcon />} name={words.sections.boxes} count={boxes} />
        <Section to="platforms" icon={<PlugIcon />} name={words.chats.title} count={platforms.value?.platforms.length} amber={away} />
        {processes.value !== null && <Section to="processes" icon={<ChipIcon />} name={words.background.title} count={processes.value.length} />}
        <Section to="schedules" icon={<ClockIcon />} name={words.schedules.title} count={schedules.value?.length} />
        <Section to="usage" icon={<CoinIcon />} name={words.sections.usage} />
        <Section to="rules" icon={<ShieldIcon />} name={words.sections.rules} count={rules.value?.length} />
        <Section to="log" icon={<LogIcon />} name={words.sections.log} />
      </nav>
      <Gate />
    </aside>
  );
}

function Section(props: { to: string; icon: ComponentChildren; name: string; count?: number | undefined; amber?: boolean }): VNode {
  const app = useApp();
  const go = (): void => {
    app.drawer.value = false;
    requestAnimationFrame(() => {
      const section = document.getElementById(`ops-${props.to}`);
      section?.scrollIntoView({ block: "start" });
      section?.focus({ preventScroll: true });
    });
  };
  return (
    <a class="section" href={`/operations#ops-${props.to}`} data-testid="section" onClick={plainClick(go)}>
      {props.icon}<span class="grow">{props.name}</span>{props.count !== undefined && props.count > 0 && <span class={props.amber ? "num amber" : "num"}>{props.count}</span>}
    </a>
  );
}
