/** What runs now, and what waits for a person. */

import type { VNode } from "preact";
import { t } from "../../i18n";
import type { AttentionItem, WorkingTurn } from "../../types";
import { duration, moment, platformName, titleOf, visible, type Shape } from "../../words";
import { ShapeIcon, StateSign } from "../icons";
import { useApp, useNow } from "../shared";
import { Card, Empty, Open, Table, Unread } from "./shared";

export function Running(): VNode {
  const app = useApp();
  const words = t().ops;
  const turns = app.operations.turns.value;
  return (
    <Card id="turns" title={words.sections.turns} sub={words.live} testid="running">
      {turns === null ? <Unread /> : turns.length === 0 ? <Empty>{words.runningEmpty}</Empty> : (
        <Table label={words.sections.turns}>
          <thead><tr><th>{words.conversation}</th><th>{words.now}</th><th class="r">{words.forTime}</th><th class="r">{words.lastSign}</th><th>{words.process}</th><th><span class="sr-only">{words.action}</span></th></tr></thead>
          <tbody>{turns.map((turn) => <RunningTurn key={turn.turn_id} turn={turn} />)}</tbody>
        </Table>
      )}
    </Card>
  );
}

function RunningTurn(props: { turn: WorkingTurn }): VNode {
  const app = useApp();
  const words = t().ops;
  const { turn } = props;
  const now = useNow(true);
  const tool = turn.phase.kind === "tool";
  return (
    <tr data-testid="running-turn">
      <td class="t two-lines"><Open session={turn.session_id}>{titleOf(turn)}</Open></td>
      <td><StateSign sign={{ shape: tool ? "tool" : "running", tone: tool ? "deep" : "kelp", text: words.attempt(tool ? (turn.phase.name ?? "") : words.model, turn.attempt) }} /></td>
      <td class="r">{duration(now - Date.parse(turn.started_at))}</td>
      <td class="r">{duration(Math.max(0, now - Date.parse(turn.last_sign_at)))}</td>
      <td class="num">{turn.pid ?? words.unknown}{turn.retiring && <span class="dim"> {words.retires}</span>}</td>
      <td><button type="button" class="b small" onClick={() => void app.operations.stopTurn(turn.session_id, turn.turn_id)}>{t().composer.stop}</button></td>
    </tr>
  );
}

export function Needs(): VNode {
  const app = useApp();
  const words = t().ops;
  const items = app.operations.attention.value;
  return (
    <Card id="needs" title={words.needs} testid="needs">
      {items === null ? <Unread /> : items.length === 0 ? <Empty>{words.figures.nobody}</Empty> : <ul class="people">{items.map((item) => <Needed key={`${item.kind}.${item.id}`} item={item} />)}</ul>}
    </Card>
  );
}

function Needed(props: { item: AttentionItem }): VNode {
  const app = useApp();
  const words = t().ops;
  const { item } = props;
  const now = useNow(true, 10_000);
  const shapes: Record<string, [Shape, string]> = { suspended: ["suspended", ""], pending: ["interrupted", "amber"], delivery_unknown: ["unknown", "amber"], delivery_dead: ["failed", "red"] };
  const [shape, tone] = shapes[item.kind] ?? ["waiting", "amber"];
  const asked = item.text.split("\n\n").map((part) => part.trim());
  const said = item.kind === "approval" && asked[1] ? visible(asked[1].replace(/^```\w*\n?|\n?```$/g, "")) : asked[0];
  const asks = item.kind === "pairing";
  const [platform, user] = asks ? item.id.split(/\/(.*)/s) : [];
  const about = [asks ? words.people.who(platformName(platform!), user!) : titleOf(item), duration(now - Date.parse(item.since)), item.expires_at ? words.openForTime(duration(Date.parse(item.expires_at) - now)) : item.rule, item.why].filter(Boolean).join(" · ");
  return (
    <li data-testid="needed" data-kind={item.kind}>
      <span class={`k ${tone}`}><ShapeIcon shape={shape} /></span>
      <p>{words.kinds[item.kind] ?? item.kind}{said ? ": " : ""}{said && (item.kind === "approval" ? <code>{said}</code> : said)}</p>
      <p class="sub" title={moment(item.since)}>{about}</p>
      {asks && (
        <span class="acts-row">
          <button type="button" class="b small kelp" data-testid="approve-pairing" onClick={() => void app.operations.letIn(platform!, user!, item.text)}>{words.people.approve}</button>
          <button type="button" class="b small" data-testid="deny-pairing" onClick={() => void app.operations.turnAway(platform!, user!)}>{words.people.deny}</button>
        </span>
      )}
      {item.kind.startsWith("delivery_") && (
        <span class="acts-row below">
          <Open session={item.session_id!} class="b small">{t().common.open}</Open>
          {item.actions.includes("retry") && <button type="button" class="b small" data-testid="send-again" onClick={() => void app.operations.decideDelivery(item.id, "retry")}>{item.kind === "delivery_dead" ? t().acts.sendAgain : words.chats.retry}</button>}
          {item.actions.includes("sent") && <button type="button" class="b small" data-testid="arrived" onClick={() => void app.operations.decideDelivery(item.id, "sent")}>{words.chats.arrived}</button>}
          {item.kind === "delivery_dead" && item.actions.includes("drop") && <button type="button" class="b small" data-testid="dismiss" onClick={() => void app.operations.decideDelivery(item.id, "drop")}>{words.chats.dismiss}</button>}
        </span>
      )}
      {item.session_id !== null && !item.kind.startsWith("delivery_") && (item.actions.includes("resume")
        ? <button type="button" class="b small" onClick={() => void app.operations.resume(item.session_id!)}>{words.resume}</button>
        : <Open session={item.session_id} class="b small">{t().common.open}</Open>)}
    </li>
  );
}
