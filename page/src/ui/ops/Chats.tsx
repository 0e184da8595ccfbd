/** The chat platforms: whether they are connected, what is owed there, and who may talk. */

import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { locale, t } from "../../i18n";
import type { Person, Platforms as Found } from "../../types";
import { duration, moment, platformName, platformOf, sentence, titleOf, visible, when, type Sign } from "../../words";
import { PlatformIcon, ShapeIcon, StateSign } from "../icons";
import { useApp, useNow } from "../shared";
import { Card, Empty, Open, Table, Told, Unread } from "./shared";

type Platform = Found["platforms"][number];

export function Platforms(): VNode {
  const words = t().ops.chats;
  const found = useApp().operations.platforms.value;
  return (
    <Card id="platforms" title={words.title} sub={found ? words.since(when(found.counted_since, new Date())) : ""} testid="platforms">
      {found === null ? <Unread /> : (
        <Table label={words.title}>
          <thead><tr><th>{words.platform}</th><th>{words.connection}</th><th class="r">{words.takenIn}</th><th class="r">{words.delivered}</th><th class="r">{words.pending}</th><th class="r">{words.unknown}</th><th class="r narrow">{words.givenUp}</th></tr></thead>
          <tbody>
            {found.platforms.map((each) => <PlatformRow key={each.name} platform={each} />)}
            <tr><td><span class="named"><PlatformIcon platform="web" small />{platformName("web")}</span></td><td><StateSign sign={{ shape: found.readers > 0 ? "running" : "next", tone: found.readers > 0 ? "kelp" : "", text: words.readers(found.readers) }} /></td><td class="r">{found.taken_in.toLocaleString(locale())}</td><Dash /><Dash /><Dash /><Dash /></tr>
          </tbody>
        </Table>
      )}
      {found?.platforms.map((each) => <Trouble key={each.name} platform={each} />)}
      {found?.platforms.length === 0 && <p class="empty"><Told text={t().ops.noPlatforms} /></p>}
    </Card>
  );
}

function Dash(): VNode {
  return <td class="r dim">{t().ops.unknown}</td>;
}

function PlatformRow(props: { platform: Platform }): VNode {
  const { platform } = props;
  const now = useNow(true, 5000);
  const { outbox } = platform;
  const unknown = (outbox.unknown ?? 0) + (outbox.repeating ?? 0);
  return (
    <tr data-testid="platform" data-state={platform.state}>
      <td><span class="named"><PlatformIcon platform={platform.name} small />{platformName(platform.name)}{platform.account && <span class="dim">{platform.account}</span>}</span></td>
      <td title={platform.since ? moment(platform.since) : undefined}><StateSign sign={connection(platform, now)} /></td>
      <td class="r">{platform.taken_in.toLocaleString(locale())}{platform.waiting > 0 && <span class="dim"> {t().ops.chats.toRead(platform.waiting)}</span>}</td>
      <td class="r">{platform.delivered.toLocaleString(locale())}</td>
      <td class="r">{(outbox.pending ?? 0) + (outbox.sending ?? 0)}</td>
      <td class={unknown > 0 ? "r amber" : "r"}>{unknown}</td>
      <td class={outbox.dead ? "r amber" : "r"}>{outbox.dead ?? 0}</td>
    </tr>
  );
}

function connection(platform: Platform, now: number): Sign {
  const words = t().ops.chats;
  const whole = (ms: number): string => duration(ms < 60_000 ? Math.round(ms / 1000) * 1000 : Math.floor(ms / 60_000) * 60_000);
  const since = platform.since === null ? "" : whole(Math.max(0, now - Date.parse(platform.since)));
  switch (platform.state) {
    case "connected": return { shape: "done", tone: "kelp", text: words.connected(since) };
    case "connecting": return { shape: "queued", tone: "", text: words.connecting };
    case "refused": return { shape: "failed", tone: "red", text: words.refused };
    case "off": return { shape: "suspended", tone: "amber", text: words.off };
    case "away": return { shape: "interrupted", tone: "amber", text: words.away(since, platform.retry_at === null ? null : duration(Math.max(0, Date.parse(platform.retry_at) - now))) };
  }
}

/** What is wrong, or was last, and where nothing arrives any more. */
function Trouble(props: { platform: Platform }): VNode | null {
  const words = t().ops.chats;
  const { platform } = props;
  const lines: string[] = [];
  if (platform.error) lines.push(words.problem(platformName(platform.name), platform.error));
  else if (platform.last_error && platform.last_error_at) lines.push(words.lastProblem(platformName(platform.name), when(platform.last_error_at, new Date()), platform.last_error));
  for (const place of platform.dead) lines.push(words.dead(platformName(place.platform), place.thread === null ? place.chat : `${place.chat}, ${place.thread}`, when(place.since, new Date()), place.why));
  return <>{lines.map((line) => <p class="empty" key={line} data-testid="platform-problem">{visible(line)}</p>)}<Unreadable platform={platform} /></>;
}

/** What came in and could not be read, also before the last restart, and what to do about it. */
function Unreadable(props: { platform: Platform }): VNode | null {
  const words = t().ops.chats;
  const { name, refused, last_refused, last_refused_at } = props.platform;
  if (refused === 0 && last_refused === null) return null;
  const last = last_refused === null || last_refused_at === null ? "" : words.lastUnreadable(when(last_refused_at, new Date()), sentence(visible(last_refused)));
  return <p class="empty unreadable" data-testid="unreadable"><span>{words.unreadable(platformName(name), refused)} {last}</span> <Told text={words.unreadableHelp} /></p>;
}

/** What waits to be answered, and what is still to be delivered. */
export function Boxes(): VNode {
  const app = useApp();
  const words = t().ops;
  const now = useNow(true, 5000);
  const { inbox, outbox } = app.operations;
  const lanes = inbox.value?.lanes ?? [];
  const owed = outbox.value?.deliveries ?? [];
  return (
    <Card id="boxes" title={words.inbox} testid="boxes">
      {lanes.length + owed.length === 0 ? <Empty>{inbox.value === null ? <Unread plain /> : words.inboxEmpty}</Empty> : (
        <Table label={words.inbox}><tbody>
          {lanes.map((lane) => <tr key={lane.session_id}><td><PlatformIcon platform={platformOf(lane.session_key)} small /></td><td class="t"><Open session={lane.session_id}>{titleOf(lane)}</Open></td><td>{words.messagesWait(lane.waiting)}, {words.behind[lane.behind] ?? lane.behind}</td><td class="r">{duration(now - Date.parse(lane.oldest_at))}</td><td /></tr>)}
          {owed.map((each) => (
            <tr key={each.delivery_id} data-testid="owed">
              <td><PlatformIcon platform={each.platform} small /></td><td class="t"><Open session={each.session_id}>{titleOf(each)}</Open></td>
              <td class="wraps"><StateSign sign={{ shape: each.state === "unknown" ? "unknown" : "queued", tone: each.state === "unknown" ? "amber" : "", text: words.delivery[each.state] ?? each.state }} />{each.error && <span class="dim"> {visible(each.error)}</span>}</td>
              <td class="r">{duration(now - Date.parse(each.at))}</td>
              <td class="wraps"><span class="acts-row">
                <button type="button" class="b small" onClick={() => void app.operations.decideDelivery(each.delivery_id, "retry")}>{words.chats.retry}</button>
                {each.state === "unknown" && <button type="button" class="b small" onClick={() => void app.operations.decideDelivery(each.delivery_id, "sent")}>{words.chats.arrived}</button>}
                <button type="button" class="b small" onClick={() => (app.operations.asking.value = { title: words.chats.dropAsk, says: words.chats.dropSays, yes: words.chats.drop, danger: true, run: () => app.operations.decideDelivery(each.delivery_id, "drop") })}>{words.chats.drop}</button>
              </span></td>
            </tr>
          ))}
        </tbody></Table>
      )}
    </Card>
  );
}

/** Who asks to talk to the agent, and who was let in. */
export function People(): VNode {
  const { operations } = useApp();
  const words = t().ops.people;
  const found = operations.people.value;
  return (
    <Card id="people" title={words.title} testid="people">
      {found === null ? <Unread /> : found.asking.length + found.paired.length === 0 ? <Empty>{words.empty}</Empty> : (
        <ul class="people">
          {found.asking.map((person) => (
            <PersonRow key={`${person.platform}/${person.user}`} person={person} asks>
              <button type="button" class="b small kelp" onClick={() => void operations.letIn(person.platform, person.user, person.name)}>{words.approve}</button>
              <button type="button" class="b small" onClick={() => void operations.turnAway(person.platform, person.user)}>{words.deny}</button>
            </PersonRow>
          ))}
          {found.paired.map((person) => (
            <PersonRow key={`${person.platform}/${person.user}`} person={person}>
              <button type="button" class="b small" onClick={() => (operations.asking.value = { title: words.removeAsk(person.name || person.user), says: words.removeSays, yes: words.remove, danger: true, run: () => operations.turnAway(person.platform, person.user) })}>{words.remove}</button>
            </PersonRow>
          ))}
        </ul>
      )}
      {found !== null && <ByCode />}
    </Card>
  );
}

function PersonRow(props: { person: Person; asks?: boolean; children: VNode | VNode[] }): VNode {
  const words = t().ops.people;
  const { person } = props;
  return (
    <li data-testid={props.asks ? "asking" : "paired"}>
      <span class={props.asks ? "k amber" : "k"}><ShapeIcon shape={props.asks ? "waiting" : "accepted"} /></span>
      <p>{visible(person.name || person.user)}</p>
      <p class="sub" title={moment(person.at)}>{words.who(platformName(person.platform), visible(person.user))} · {(props.asks ? words.asked : words.since)(when(person.at, new Date()))}</p>
      <span class="acts-row">{props.children}</span>
    </li>
  );
}

/** The code proves who it is: anybody can take any name. */
function ByCode(): VNode {
  const { operations } = useApp();
  const words = t().ops.people;
  const [code, setCode] = useState("");
  return (
    <form class="by-code" onSubmit={(event) => { event.preventDefault(); if (code.trim()) void operations.letInByCode(code.trim()).then((well) => { if (well) setCode(""); }); }}>
      <label for="pairing-code">{words.code}</label>
      <input id="pairing-code" data-testid="pairing-code" value={code} autocomplete="off" spellcheck={false} onInput={(event) => setCode(event.currentTarget.value)} />
      <button type="submit" class="b small" disabled={code.trim() === ""}>{words.approve}</button>
    </form>
  );
}
