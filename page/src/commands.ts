/** What can be said to the gateway itself, and how the message field offers it. Pure. */

export interface Command {
  name: string;
  /** How it is written, and what it does. */
  form: string;
  sentence: string;
  /** True for one that says nothing without an argument. */
  wants: boolean;
}

export const COMMANDS: readonly Command[] = [
  { name: "stop", form: "/stop", sentence: "Stop what is running. Waiting messages stay.", wants: false },
  { name: "new", form: "/new", sentence: "Start a new conversation; this one is kept.", wants: false },
  { name: "resume", form: "/resume [number]", sentence: "Go back to an earlier conversation, or continue interrupted work.", wants: false },
  { name: "sessions", form: "/sessions", sentence: "List the conversations of this chat.", wants: false },
  { name: "status", form: "/status", sentence: "Show what is happening here.", wants: false },
  { name: "queue", form: "/queue TEXT", sentence: "Send TEXT as the next message, even while a question is open.", wants: true },
  { name: "restart", form: "/restart", sentence: "Restart Holdfast (if allowed).", wants: false },
  { name: "help", form: "/help", sentence: "List these commands.", wants: false },
];

/** The commands that what is typed so far may become. Nothing for a path such as /usr/bin, and nothing once an argument is begun. */
export function offered(typed: string): readonly Command[] {
  const begun = /^\/([a-z]*)$/i.exec(typed);
  return begun ? COMMANDS.filter((command) => command.name.startsWith(begun[1]!.toLowerCase())) : [];
}

/** What the field holds once the command is chosen. */
export function written(command: Command): string {
  return command.wants ? `/${command.name} ` : `/${command.name}`;
}

/** True for words to the gateway, as it reads them: a slash and a name. What is to be queued is a message, and so is what begins with a space. */
export function isCommand(text: string): boolean {
  const match = /^\/([A-Za-z][A-Za-z0-9_-]*)(?:@\S+)?(?:\s+([\s\S]*))?$/.exec(text.trimEnd());
  return match !== null && !(match[1]!.toLowerCase() === "queue" && match[2]);
}
