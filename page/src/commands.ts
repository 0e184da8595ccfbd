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
  { name: "model", form: "/model [name or number]", sentence: "List the models, or choose the one that answers in this conversation.", wants: false },
  { name: "queue", form: "/queue TEXT", sentence: "Send TEXT as the next message, even while a question is open.", wants: true },
  { name: "steer", form: "/steer TEXT", sentence: "Send TEXT to the answer that is being written.", wants: true },
  { name: "interrupt", form: "/interrupt TEXT", sentence: "Stop what is running, and answer TEXT next.", wants: true },
  { name: "remind", form: "/remind [WHEN TEXT]", sentence: "Start work from TEXT at a time, once or again and again; without words, list what is planned.", wants: false },
  { name: "approve", form: "/approve [id or all] [always]", sentence: "Let a call run that waits for your approval; `always` for this conversation.", wants: false },
  { name: "deny", form: "/deny [id or all] [reason]", sentence: "Refuse a call that waits for your approval.", wants: false },
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

/** Those that send their TEXT to the agent. */
const SENDING = new Set(["queue", "steer", "interrupt"]);

/** True for words to the gateway, as it reads them: a slash and a name. What is to be sent on is a message, and so is what begins with a space. */
export function isCommand(text: string): boolean {
  const match = /^\/([A-Za-z][A-Za-z0-9_-]*)(?:@\S+)?(?:\s+([\s\S]*))?$/.exec(text.trimEnd());
  return match !== null && !(SENDING.has(match[1]!.toLowerCase()) && match[2]);
}
