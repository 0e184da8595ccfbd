import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { t } from "../i18n";
import type { Command } from "../types";

export const OFFER = "offer";

export function optionId(command: Command): string {
  return `offer-${command.name}`;
}

function Saying(props: { command: Command }): VNode {
  const [form, sentence] = t().composer.commandWords[props.command.name] ?? [props.command.form, props.command.sentence];
  return <><code>{form}</code><span>{sentence}</span></>;
}

/** The commands that the typed slash may become. The focus stays in the field, which names the chosen one. */
export function Offer(props: { commands: readonly Command[]; chosen: number; choose: (index: number) => void; take: (command: Command) => void }): VNode {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => list.current?.children[props.chosen]?.scrollIntoView({ block: "nearest" }), [props.chosen]);
  return (
    <ul class="offer" id={OFFER} role="listbox" aria-label={t().composer.commands} data-testid="commands" ref={list}>
      {props.commands.map((command, index) => (
        <li
          key={command.name} id={optionId(command)} role="option" aria-selected={index === props.chosen} data-testid="command" data-name={command.name}
          onMouseMove={() => props.choose(index)}
          onMouseDown={(event) => { event.preventDefault(); props.take(command); }} // Before the field loses its focus.
        >
          <Saying command={command} />
        </li>
      ))}
    </ul>
  );
}
