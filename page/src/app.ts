/** The page, put together: what is signed in, what is open, what the user does. The drawing is in `ui/`. */

import { effect, signal, untracked } from "@preact/signals";
import { filesOf } from "./answers";
import { Api, type Fetch, Refused, SignedOut, Unavailable } from "./api";
import { delayMs } from "./backoff";
import { Connection } from "./connection";
import { Conversation } from "./conversation";
import { randomId } from "./ids";
import { List } from "./list";
import { isCommand, learn } from "./commands";
import { Pending } from "./pending";
import { isNew, type Mode, type Verdict } from "./outbox";
import { Pause } from "./pause";
import { SafeMode } from "./safemode";
import { Shelf } from "./shelf";
import { Sending } from "./sending";
import { t } from "./i18n";
import type { LogEvent } from "./log";
import { Notifier } from "./notifier";
import { OperationsView } from "./operations";
import { Preferences } from "./preferences";
import { KeptDrafts } from "./drafts";
import { Drafts, type SafeStorage } from "./storage";
import type { Attached, Command, Message, Question, Session, Status, Summary } from "./types";
import { MOST_FILES, Uploads } from "./uploads";
import { judged } from "./words";

/** What the address says: a session, or a conversation that is about to begin, by a name of our own; or nothing that there is. */
export interface Route {
  session: string | null;
  fresh: string;
  nowhere?: boolean;
  /** The operator's view. */
  operations?: boolean;
}

export interface Toast {
  text: string;
  action: { label: string; run: () => void } | null;
}

/** Where the commands are kept, for a reload while the server is away. */
const COMMANDS = "holdfast.commands";
/** So long something has to be there before it counts as seen. */
const SEEN_MS = 800;

export class App {
  readonly connection = new Connection();
  readonly api: Api;
  readonly list: List;
  readonly conversation: Conversation;
  readonly sending: Sending;
  readonly safeMode: SafeMode;
  readonly drafts: Drafts;
  /** The same, on the server: what is typed on one device is there on the next. */
  readonly kept: KeptDrafts;
  readonly uploads: Uploads;
  readonly route = signal<Route>({ session: null, fresh: "" });
  readonly toast = signal<Toast | null>(null);
  readonly drawer = signal(false);
  readonly palette = signal(false);
  /** The message that is to come into view once it is there. */
  readonly sought = signal<string | null>(null);
  /** The conversation in which somebody wants to find something. */
  readonly finding = signal<string | null>(null);
  readonly showingKeys = signal(false);
  readonly preferences: Preferences;
  readonly operations: OperationsView;
  readonly notifier: Notifier;
  /** The turn whose story is shown next to the conversation: its id, `newest`, or null for none. */
  readonly details = signal<string | null>(null);
  /** The models that a conversation may choose, the default first. */
  readonly models = signal<string[]>([]);
  /** The conversation whose resumption was asked for and is not yet under way. */
  readonly resuming = signal<string | null>(null);
  /** Grows when the user says something here: what they said comes into view. */
  readonly spoken = signal(0);
  /** Grows when something else than typing changed what is typed. */
  readonly redrafted = signal(0);
  /** Why signing in did not work, for the sign-in form. */
  readonly signInProblem = signal<string | null>(null);
  readonly #resumePause = new Pause();
  readonly #shelf = new Shelf();
  #seen = "";
  #looked: Session | null = null;
  #seeing: ReturnType<typeof setTimeout> | undefined;
  #toastTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(fetch: Fetch, private readonly storage: SafeStorage) {
    this.api = new Api(fetch);
    this.preferences = new Preferences(storage);
    this.drafts = new Drafts(storage);
    this.kept = new KeptDrafts(this.api, this.drafts, storage, () => this.redrafted.value++);
    this.uploads = new Uploads(this.api, this.connection, new Pending());
    this.list = new List(this.api, this.connection, this.#shelf);
    this.conversation = new Conversation(this.api, fetch, this.connection, { rev: () => this.list.rev, received: (event) => this.#told(event) }, this.#shelf);
    this.safeMode = new SafeMode(this.api, this.connection, (text) => this.say(text), (status) => (this.models.value = status.models ?? []));
    this.notifier = new Notifier(this.preferences, this.list, storage, { open: (session_id) => this.go(session_id), takesOver: () => this.#stayConnected() });
    this.operations = new OperationsView(this.api, this.connection, () => this.safeMode.check(), (text) => this.say(text));
    this.sending = new Sending(storage, this.api, this.connection, {
      created: (name, session_id) => this.#created(name, session_id),
      accepted: (asked, session_id) => {
        // A conversation that is suspended or was left goes on in another one, which the server names; so does a command that moves.
        if (asked !== session_id && this.route.value.session === asked) this.go(session_id, true);
        void this.list.refresh();
      },
    });
    this.route.value = this.#routeOf(location.pathname);
  }

  async start(): Promise<void> {
    window.addEventListener("popstate", () => (this.route.value = this.#routeOf(location.pathname)));
    window.addEventListener("hashchange", () => void this.#signInByAddress());
    window.addEventListener("online", () => this.#wake());
    window.addEventListener("storage", () => {
      this.sending.reread();
      this.preferences.read();
    });
    document.addEventListener("visibilitychange", () => this.#visibility());
    this.connection.onBack(() => this.#wake());
    this.#recallCommands();
    await this.#signInByAddress();
    effect(() => {
      if (this.connection.state.value === "live") untracked(() => void this.#learnCommands());
    });
    effect(() => {
      const { session } = this.route.value;
      if (this.connection.state.value === "signed-out") {
        this.conversation.close();
        this.list.stop();
      } else this.conversation.open(session);
    });
    effect(() => {
      void this.route.value;
      this.sought.value = null; // Whoever goes elsewhere no longer looks for it.
    });
    effect(() => {
      const { session } = this.route.value;
      if (session !== null && this.connection.state.value === "live") untracked(() => void this.kept.fetch(session));
    });
    effect(() => {
      const view = this.conversation.view.value;
      if (view && this.sending.sent.value.length > 0) this.sending.seen(new Set(view.session.messages.map((message) => message.id)), Date.now());
    });
    effect(() => {
      // Another conversation took the place of the open one: that is not in its own log, only in the list.
      const listed = this.list.sessions.value?.find((session) => session.session_id === this.route.value.session);
      if (listed) untracked(() => this.conversation.placed(listed.session_id, listed.current));
    });
    effect(() => this.#see());
    this.list.start();
    this.sending.wake();
    void this.uploads.recall();
    void this.safeMode.check();
  }

  /** A server that has come back may be another version. */
  async #learnCommands(): Promise<void> {
    try {
      const { commands } = await this.api.commands();
      learn(commands);
      this.storage.setItem(COMMANDS, JSON.stringify(commands));
    } catch {
      // Those that are known stay.
    }
  }

  #recallCommands(): void {
    try {
      learn(JSON.parse(this.storage.getItem(COMMANDS) ?? "[]") as Command[]);
    } catch {
      this.storage.removeItem(COMMANDS);
    }
  }

  /** What the stream says besides the events of the open conversation. */
  #told(event: LogEvent): void {
    if (event.name === "status") return this.safeMode.hear(event.data as unknown as Status);
    if (event.name === "list.changed") this.notifier.changed(event.data.session as Summary);
    this.list.received(event);
  }

  /** What is open before somebody's eyes is seen, as soon as it rests, or they go elsewhere. */
  #see(): void {
    const session = this.conversation.view.value?.session;
    clearTimeout(this.#seeing);
    if (this.#looked !== null && this.#looked.session_id !== session?.session_id) this.#saw(this.#looked);
    this.#looked = null;
    if (!session || session.state === "running" || document.visibilityState !== "visible" || this.#seen === session.cursor) return;
    this.#looked = session;
    this.#seeing = setTimeout(() => this.#saw(session), SEEN_MS);
  }

  #saw(session: Session): void {
    this.#looked = null;
    this.#seen = session.cursor;
    untracked(() => this.list.patch(session.session_id, { unread: false }));
    void this.api.seen(session.session_id, session.cursor).catch(() => undefined);
  }

  // Signing in

  /** An address that ends in `#code=...` signs in. The code leaves the address bar before anything else happens. */
  async #signInByAddress(): Promise<void> {
    const code = new URLSearchParams(location.hash.slice(1)).get("code");
    if (code === null) return;
    history.replaceState(history.state, "", location.pathname + location.search);
    for (let tries = 1; ; tries++) {
      const problem = await this.#signIn({ code });
      if (problem !== "away") return;
      await new Promise((resolve) => setTimeout(resolve, delayMs(tries, Math.random())));
    }
  }

  /** What people paste: the link that `holdfast open` prints, its code, or the token. */
  async signInByPasting(pasted: string): Promise<void> {
    const code = /[#?&]?code=([\w-]+)/.exec(pasted)?.[1];
    const problem = await this.#signIn(code === undefined ? { token: pasted } : { code });
    if (problem === "away") this.signInProblem.value = t().signIn.noAnswer;
  }

  async #signIn(credential: { code: string } | { token: string }): Promise<"in" | "refused" | "away"> {
    this.signInProblem.value = null;
    try {
      await this.api.login(credential);
    } catch (error) {
      if (error instanceof Unavailable) return "away";
      const code = "code" in credential;
      const wrong = code ? t().signIn.usedLink : t().signIn.wrong;
      this.signInProblem.value = error instanceof Refused && error.status === 429 ? error.message : wrong;
      // A code that is used up does not end a cookie that is good: the next request tells.
      return "refused";
    }
    this.connection.signedIn();
    return "in";
  }

  async signOut(): Promise<void> {
    const unsent = this.sending.items.value.length;
    if (unsent > 0 && !window.confirm(t().settings.unsent(unsent))) return;
    try {
      await this.api.logout();
    } catch (error) {
      if (!(error instanceof SignedOut)) return this.say(t().settings.stillIn);
    }
    this.sending.discardAll();
    this.uploads.forget();
    this.storage.removeAll("holdfast.");
    this.conversation.forget();
    this.list.forget();
    await this.#shelf.forget();
    this.safeMode.forget();
    this.signInProblem.value = null;
    this.connection.signedOut();
    this.go(null);
  }

  // Going places

  #routeOf(path: string): Route {
    const match = /^\/s\/([^/]+)\/?$/.exec(path);
    if (match) return { session: decodeURIComponent(match[1]!), fresh: "" };
    if (/^\/operations(\/|$)/.test(path)) return { session: null, fresh: `new:${randomId()}`, operations: true };
    // What was begun while the server was away is still here after a reload.
    const begun = this.sending.items.value.findLast((item) => isNew(item.conversation));
    return { session: null, fresh: begun?.conversation ?? `new:${randomId()}`, nowhere: path !== "/" && path !== "/index.html" };
  }

  go(session: string | null, replace = false): void {
    this.drawer.value = false;
    const path = session === null ? "/" : `/s/${encodeURIComponent(session)}`;
    if (path !== location.pathname) history[replace ? "replaceState" : "pushState"](null, "", path);
    this.route.value = { session, fresh: session === null ? `new:${randomId()}` : "" };
    this.details.value = null;
  }

  /** To a message of a conversation: as many earlier pages are fetched as it takes. */
  jump(session: string, message_id: string): void {
    if (this.route.value.session !== session) this.go(session);
    this.drawer.value = false;
    this.sought.value = message_id;
  }

  /** A message that somebody looks for cannot be fetched: it is not looked for again by itself. */
  lost(message_id: string): void {
    if (this.sought.value !== message_id) return;
    this.sought.value = null;
    this.say(t().conversation.cannotJump);
  }

  goOperations(): void {
    this.drawer.value = false;
    if (location.pathname !== "/operations") history.pushState(null, "", "/operations");
    this.route.value = { session: null, fresh: `new:${randomId()}`, operations: true };
  }

  /** The list: a drawer on a phone, a column elsewhere. */
  showList(): void {
    this.drawer.value = true;
    this.preferences.setList(true);
    requestAnimationFrame(() => document.querySelector<HTMLElement>("[data-testid=hide-list]")?.focus());
  }

  hideList(): void {
    this.drawer.value = false;
    this.preferences.setList(false);
    requestAnimationFrame(() => document.querySelector<HTMLElement>("[data-testid=show-list]")?.focus());
  }

  toggleDetails(): void {
    this.details.value = this.details.value === null ? "newest" : null;
  }

  showDetails(turn_id: string): void {
    this.details.value = turn_id;
  }

  closeDetails(): void {
    this.details.value = null;
    // Under a sheet nothing can have the focus: not before it is drawn away.
    requestAnimationFrame(() => document.querySelector<HTMLElement>("[data-testid=details-button]")?.focus());
  }

  /** Back to a conversation that was begun here and is not known to the server yet. */
  goFresh(name: string): void {
    this.go(null);
    this.route.value = { session: null, fresh: name };
  }

  /** The name under which what is open keeps its outbox. */
  get openName(): string {
    return this.route.value.session ?? this.route.value.fresh;
  }

  get draftName(): string {
    return this.route.value.session ?? "new";
  }

  #created(name: string, session_id: string): void {
    const { session, fresh } = this.route.value;
    if (session === null && fresh === name) {
      this.drafts.set(session_id, this.drafts.get("new"));
      this.drafts.set("new", "");
      this.uploads.moved("new", session_id);
      this.go(session_id, true);
    }
    void this.list.refresh();
  }

  // Doing things

  /** Sends what stands in the message field, with its files. */
  sendTyped(text: string, mode: Mode | null): void {
    this.send(text, mode, this.uploads.take(this.draftName));
  }

  /** Sends a message once more, with its own files; what stands in the message field stays there. Says whether that worked. */
  async again(message: Message): Promise<boolean> {
    const name = this.openName;
    const attachments = await this.#withFiles(message, (file) => this.api.upload(file, randomId(), new AbortController().signal));
    if (attachments === null) return false;
    this.sending.send(name, message.text, attachments.length > 0 ? { attachments } : {});
    this.spoken.value++;
    return true;
  }

  /** Puts a message back into the message field, with its files, to be changed and sent. */
  async reuse(message: Message): Promise<void> {
    const draft = this.draftName;
    if (message.text !== "") this.putBack(message.text);
    const files = await this.#withFiles(message, (file) => Promise.resolve(file));
    if (files !== null && files.length > 0) this.attach(draft, files);
  }

  /** The files of a message, each made into something; null, with a word to the user, where one of them cannot be had. */
  async #withFiles<T>(message: Message, make: (file: File) => Promise<T>): Promise<T[] | null> {
    try {
      return await Promise.all(filesOf(message.parts).map(async (part) => make(await this.api.file(part))));
    } catch (error) {
      if (error instanceof SignedOut) this.connection.signedOut();
      else this.say(error instanceof Refused ? error.message : t().common.away);
      return null;
    }
  }

  /** Takes files along with the next message of a conversation. */
  attach(draft: string, files: File[]): void {
    const over = this.uploads.add(draft, files);
    if (over > 0) this.say(t().composer.tooMany(MOST_FILES, over));
  }

  /** `mode`: what becomes of it while an answer is being written. Words to the gateway have none. */
  send(text: string, mode: Mode | null, attachments: Attached[]): void {
    this.sending.send(this.openName, text, { ...(mode && !isCommand(text) && { mode }), ...(attachments.length > 0 && { attachments }) });
    this.spoken.value++;
  }

  /** `chosen`: it is one of the question's choices. */
  answer(question_id: string, text: string, chosen: boolean): void {
    this.sending.send(this.openName, text, { question_id, chosen });
    this.spoken.value++;
  }

  judge(question: Question, verdict: Verdict): void {
    this.sending.send(this.openName, judged(verdict, question.pattern), { question_id: question.question_id, verdict });
  }

  /** Takes the open conversation up again, where it was suspended, left, or cut and held. Tried until the server has it, or another one is opened. */
  async resume(): Promise<void> {
    const session = this.route.value.session;
    if (session === null || this.resuming.value === session) return;
    this.resuming.value = session;
    const client_id = randomId();
    for (let tries = 1; this.route.value.session === session; tries++) {
      try {
        const { session_id } = await this.api.resume(session, client_id);
        if (session_id !== session && this.route.value.session === session) this.go(session_id);
        void this.list.refresh();
        break;
      } catch (error) {
        if (!(error instanceof Unavailable)) {
          if (error instanceof SignedOut) this.connection.signedOut();
          else this.say(error instanceof Refused ? error.message : t().bars.cannotResume);
          break;
        }
        await this.#resumePause.wait(delayMs(tries, Math.random()));
      }
    }
    if (this.resuming.value === session) this.resuming.value = null;
  }

  /** What is typed in what is open: kept here at once, and on the server soon. */
  type(text: string): void {
    this.drafts.set(this.draftName, text);
    if (this.route.value.session !== null) this.kept.changed(this.route.value.session);
  }

  /** Puts words back into the message field, below what stands there. */
  putBack(text: string): void {
    const typed = this.drafts.get(this.draftName);
    this.type(typed.trim() === "" ? text : `${typed}\n${text}`);
    this.redrafted.value++;
  }

  /** Changes a conversation: at once on the page, then on the server, and back where that fails. */
  async change(session: Pick<Summary, "session_id" | "title" | "pinned" | "archived">, changed: { title?: string; pinned?: boolean; archived?: boolean; model?: string }): Promise<void> {
    this.list.patch(session.session_id, changed);
    try {
      await this.api.change(session.session_id, changed);
      if (changed.archived !== undefined) this.#sayArchived(session.session_id, changed.archived);
    } catch (error) {
      if (error instanceof SignedOut) this.connection.signedOut();
      else this.say(error instanceof Refused ? error.message : t().common.away);
    }
    void this.list.refresh();
  }

  #sayArchived(session_id: string, archived: boolean): void {
    const undo = (): void => void this.api.change(session_id, { archived: !archived }).then(() => this.list.refresh(), () => this.say(t().list.cannotUndo));
    this.say(archived ? t().list.wasArchived : t().list.wasUnarchived, { label: t().common.undo, run: undo });
  }

  /** Deletes a conversation; for a while it can be brought back. */
  async delete(session_id: string): Promise<void> {
    try {
      await this.api.delete(session_id);
    } catch (error) {
      if (error instanceof SignedOut) return this.connection.signedOut();
      return this.say(error instanceof Refused ? error.message : t().common.away);
    }
    this.list.drop(session_id);
    if (this.route.value.session === session_id) this.go(null, true);
    this.say(t().list.wasDeleted, { label: t().common.undo, run: () => void this.undelete(session_id) });
  }

  /** Brings a deleted conversation back, and opens it. */
  async undelete(session_id: string): Promise<void> {
    try {
      await this.api.undelete(session_id);
      this.go(session_id);
    } catch (error) {
      if (error instanceof SignedOut) return this.connection.signedOut();
      this.say(t().list.cannotUndo);
    }
    void this.list.refresh();
  }

  /** Takes back a message that still waits, and puts its words into the message field. */
  async withdraw(message: Message): Promise<void> {
    const session = this.route.value.session;
    if (session === null) return;
    try {
      await this.api.withdraw(session, message.id);
      void this.reuse(message);
      this.say(t().acts.withdrawn);
    } catch (error) {
      if (error instanceof SignedOut) this.connection.signedOut();
      else this.say(error instanceof Refused ? (error.status === 409 ? t().acts.tooLate : error.message) : t().common.away);
    }
  }

  /** A new conversation with everything up to an answer, or up to what was said before a request, whose words are then in the message field. */
  async branch(message: Message): Promise<void> {
    const session = this.route.value.session;
    if (session === null) return;
    try {
      const { session_id } = await this.api.branch(session, message.id, randomId());
      void this.list.refresh();
      this.go(session_id);
      if (message.role === "user") void this.reuse(message);
      this.say(t().acts.branched);
    } catch (error) {
      if (error instanceof SignedOut) this.connection.signedOut();
      else this.say(error instanceof Refused ? error.message : t().common.away);
    }
  }

  /** The first lines of what somebody said, to answer to. */
  quote(text: string): void {
    const lines = text.trim().split("\n");
    const shown = lines.slice(0, 12).map((line) => `> ${line}`);
    this.putBack(`${shown.join("\n")}${lines.length > shown.length ? "\n> …" : ""}\n\n`);
  }

  /** Starts something long, and says how to kill the process in the middle of it. */
  dare(text: string): void {
    this.send(text, null, []);
    const pid = this.safeMode.status.value?.pid;
    if (pid === undefined) return;
    const command = `kill -9 ${pid}`;
    this.say(command, canCopy() ? { label: t().common.copy, run: () => void navigator.clipboard.writeText(command) } : null, 60_000);
  }

  async setNotifying(on: boolean): Promise<void> {
    if (on && (await Notification.requestPermission()) !== "granted") return this.say(t().settings.notificationsDenied);
    this.preferences.setNotifying(on);
  }

  say(text: string, action: Toast["action"] = null, for_ms = 6000): void {
    clearTimeout(this.#toastTimer);
    this.toast.value = { text, action };
    this.#toastTimer = setTimeout(() => (this.toast.value = null), for_ms);
  }

  hush(): void {
    this.toast.value = null;
  }

  #wake(): void {
    this.conversation.wake();
    this.#resumePause.wake();
    void this.safeMode.check();
    this.sending.wake();
    this.uploads.wake();
    this.list.start();
  }

  /** A hidden tab may have given its connection back before it became the one that tells. */
  #stayConnected(): void {
    if (document.visibilityState !== "visible" && this.connection.state.value !== "signed-out") this.conversation.visible(this.notifier.keeps);
  }

  #visibility(): void {
    const visible = document.visibilityState === "visible";
    this.#see();
    this.conversation.visible(visible || this.notifier.keeps);
    if (!visible) {
      this.safeMode.rest();
      return this.list.stop();
    }
    if (this.connection.state.value !== "signed-out") this.#wake();
  }
}

/** The browser offers the clipboard only to secure pages. */
function canCopy(): boolean {
  return navigator.clipboard !== undefined;
}
