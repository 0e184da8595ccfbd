/** What can be said to the gateway itself, and how the message field offers it. The server says which commands there are. */

import { signal } from "@preact/signals";
import type { Command } from "./types";

const known = signal<readonly Command[]>([]);

/** From now on these are offered. */
export function learn(commands: readonly Command[]): void {
  known.value = commands;
}

/** The commands that what is typed so far may become. Nothing for a path such as /usr/bin, and nothing once an argument is begun. */
export function offered(typed: string): readonly Command[] {
  const begun = /^\/([a-z]*)$/i.exec(typed);
  return begun ? known.value.filter((command) => command.name.startsWith(begun[1]!.toLowerCase())) : [];
}

/** What the field holds once the command is chosen. */
export function written(command: Command): string {
  return command.sends ? `/${command.name} ` : `/${command.name}`;
}

/** True for words to the gateway, as it reads them: a slash and a name. What is to be sent on is a message, and so is what begins with a space. */
export function isCommand(text: string): boolean {
  const match = /^\/([A-Za-z][A-Za-z0-9_-]*)(?:@\S+)?(?:\s+([\s\S]*))?$/.exec(text.trimEnd());
  return match !== null && !(match[2] && known.value.some((command) => command.sends && command.name === match[1]!.toLowerCase()));
}
