/** The requests of the page, each once, and what can become of them. Retrying is for the caller to decide. */

import type { Answer, Post } from "./outbox";
import type { TurnRecord } from "./spans";
import type { Attached, BytesPart, Command, Draft, Found, MessagePage, Session, SessionPage, Status, Summary } from "./types";

/** Nobody answered, or the one who did cannot serve now: try again. */
export class Unavailable extends Error {
  constructor(what: string) {
    super(what);
  }
}

/** The credential is missing or no longer good. */
export class SignedOut extends Error {
  constructor(message: string) {
    super(message);
  }
}

/** The server understood and said no. */
export class Refused extends Error {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(message);
  }
}

const TIMEOUT_MS = 15_000;
/** So many messages at a time. */
const PAGE = 100;

export type Fetch = (path: string, init: RequestInit) => Promise<Response>;

/** The error that an answer which is not a success stands for. */
export async function failure(response: Response): Promise<Error> {
  let code = "";
  let message = "";
  try {
    const body = (await response.json()) as { error?: { code?: string; message?: string } };
    code = body.error?.code ?? "";
    message = body.error?.message ?? "";
  } catch {
    // Not our server's words: the status has to do.
  }
  if (response.status === 401) return new SignedOut(message || "You are signed out.");
  if (response.status === 501) return new Refused(501, code || "not_yet", message || "This is not possible yet.");
  if (response.status >= 500 || response.status === 408) return new Unavailable(message || `The server answered ${response.status}.`);
  return new Refused(response.status, code || String(response.status), message || `The server answered ${response.status}.`);
}

/** Where the bytes of an attachment are. */
export function addressOf(part: BytesPart): string {
  const asked = new URLSearchParams({ type: part.media_type, ...(part.name !== null && { name: part.name }) });
  return `/api/blobs/${encodeURIComponent(part.digest)}?${asked}`;
}

export class Api {
  constructor(private readonly fetch: Fetch) {}

  #request(method: string, path: string, body?: unknown): Promise<unknown> {
    const headers: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
    return this.#fetched(path, { method, headers, body: body === undefined ? null : JSON.stringify(body), signal: AbortSignal.timeout(TIMEOUT_MS) });
  }

  async #fetched(path: string, init: RequestInit, read: (response: Response) => Promise<unknown> = (response) => response.json()): Promise<unknown> {
    let response: Response;
    try {
      response = await this.fetch(path, { ...init, credentials: "same-origin", cache: "no-store" });
      if (response.ok) return response.status === 204 ? null : await read(response);
    } catch (error) {
      throw new Unavailable(error instanceof Error ? error.message : "The server is away.");
    }
    throw await failure(response);
  }

  login(credential: { code: string } | { token: string }): Promise<unknown> {
    return this.#request("POST", "/api/login", credential);
  }

  logout(): Promise<unknown> {
    return this.#request("POST", "/api/logout", {});
  }

  async sessions(asked: { query?: string; limit?: number; before?: string; archived?: boolean; state?: "waiting" | "pinned" | "deleted" }): Promise<SessionPage> {
    const words = new URLSearchParams();
    for (const [name, value] of Object.entries(asked)) if (value !== undefined && value !== "" && value !== false) words.set(name, String(value));
    return (await this.#request("GET", `/api/sessions?${words}`)) as SessionPage;
  }

  /** With the newest page of its conversation. */
  async session(id: string): Promise<Session> {
    return (await this.#request("GET", `/api/sessions/${encodeURIComponent(id)}?messages=${PAGE}`)) as Session;
  }

  /** The messages before one that is there already. */
  async earlier(id: string, before: string): Promise<MessagePage> {
    return (await this.#request("GET", `/api/sessions/${encodeURIComponent(id)}/messages?${new URLSearchParams({ before, limit: String(PAGE) })}`)) as MessagePage;
  }

  /** Without a title: one that is given counts as a person's, and then no model is asked for a better one. */
  async create(): Promise<{ session_id: string }> {
    return (await this.#request("POST", "/api/sessions", {})) as { session_id: string };
  }

  async change(id: string, changed: { title?: string; pinned?: boolean; archived?: boolean; model?: string }): Promise<Summary> {
    return (await this.#request("PATCH", `/api/sessions/${encodeURIComponent(id)}`, changed)) as Summary;
  }

  delete(id: string): Promise<unknown> {
    return this.#request("DELETE", `/api/sessions/${encodeURIComponent(id)}`);
  }

  undelete(id: string): Promise<unknown> {
    return this.#request("POST", `/api/sessions/${encodeURIComponent(id)}/undelete`, {});
  }

  /** Takes back a message that no turn has taken. */
  withdraw(id: string, message_id: string): Promise<unknown> {
    return this.#request("DELETE", `/api/sessions/${encodeURIComponent(id)}/messages/${encodeURIComponent(message_id)}`);
  }

  async post(id: string, message: Post): Promise<{ message_id: string; session_id: string }> {
    return (await this.#request("POST", `/api/sessions/${encodeURIComponent(id)}/messages`, message)) as { message_id: string; session_id: string };
  }

  /** A file may take as long as it takes; `signal` gives up. */
  async upload(file: File, client_id: string, signal: AbortSignal): Promise<Attached> {
    const asked = new URLSearchParams({ name: file.name, client_id });
    return (await this.#fetched(`/api/uploads?${asked}`, { method: "POST", headers: { "Content-Type": file.type || "application/octet-stream" }, body: file, signal })) as Attached;
  }

  /** A file of a message, as it was sent. */
  async file(part: BytesPart): Promise<File> {
    const bytes = (await this.#fetched(addressOf(part), { method: "GET" }, (response) => response.blob())) as Blob;
    return new File([bytes], part.name ?? "attachment", { type: part.media_type });
  }

  answer(question: string, answer: Answer): Promise<unknown> {
    return this.#request("POST", `/api/${"verdict" in answer ? "approvals" : "questions"}/${encodeURIComponent(question)}`, answer);
  }

  /** Stops this turn and no later one. */
  stop(id: string, turn_id: string, client_id: string): Promise<unknown> {
    return this.#request("POST", `/api/sessions/${encodeURIComponent(id)}/stop`, { turn_id, client_id });
  }

  async branch(id: string, message_id: string, client_id: string): Promise<{ session_id: string }> {
    return (await this.#request("POST", `/api/sessions/${encodeURIComponent(id)}/branch`, { message_id, client_id })) as { session_id: string };
  }

  async resume(id: string, client_id: string): Promise<{ session_id: string }> {
    return (await this.#request("POST", `/api/sessions/${encodeURIComponent(id)}/resume`, { client_id })) as { session_id: string };
  }

  /** Everywhere, or in one conversation. */
  async search(q: string, session: string | null = null): Promise<Found> {
    return (await this.#request("GET", `/api/search?${new URLSearchParams({ q, limit: "30", ...(session !== null && { session }) })}`)) as Found;
  }

  async turn(id: string, turn_id: string): Promise<{ events: TurnRecord[] }> {
    return (await this.#request("GET", `/api/sessions/${encodeURIComponent(id)}/turns/${encodeURIComponent(turn_id)}/events`)) as { events: TurnRecord[] };
  }

  async draft(id: string): Promise<Draft> {
    return (await this.#request("GET", `/api/sessions/${encodeURIComponent(id)}/draft`)) as Draft;
  }

  async keepDraft(id: string, draft: Draft): Promise<Draft> {
    return (await this.#request("PUT", `/api/sessions/${encodeURIComponent(id)}/draft`, draft)) as Draft;
  }

  seen(id: string, cursor: string): Promise<unknown> {
    return this.#request("POST", `/api/sessions/${encodeURIComponent(id)}/seen`, { cursor });
  }

  /** For the operator's view, which names what it asks for itself. */
  order(method: "GET" | "POST" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<unknown> {
    return this.#request(method, path, body);
  }

  removeRule(id: string): Promise<unknown> {
    return this.#request("DELETE", `/api/rules/${encodeURIComponent(id)}`);
  }

  admin(what: "pause" | "unpause" | "restart" | "stop", body: unknown = {}): Promise<unknown> {
    return this.#request("POST", `/api/admin/${what}`, body);
  }

  /** What can be said to the gateway itself. */
  async commands(): Promise<{ commands: Command[] }> {
    return (await this.#request("GET", "/api/commands")) as { commands: Command[] };
  }

  async status(): Promise<Status> {
    return (await this.#request("GET", "/api/status")) as Status;
  }

  resumeAll(): Promise<unknown> {
    return this.#request("POST", "/api/admin/resume", {});
  }
}
