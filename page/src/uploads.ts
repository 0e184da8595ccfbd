/** The files that will go with the next message, by conversation: uploaded as soon as they are chosen, so that sending is quick. */

import { signal } from "@preact/signals";
import { type Api, SignedOut, Unavailable } from "./api";
import type { Connection } from "./connection";
import { randomId } from "./ids";
import type { Pending } from "./pending";
import type { Attached } from "./types";

/** So many may go with one message. */
export const MOST_FILES = 20;

export interface Upload {
  /** The same in every try: the server knows a file by it. */
  client_id: string;
  draft: string;
  file: File;
  attached: Attached | null;
  /** Why it could not be uploaded; null while it is under way, and once it is there. */
  problem: string | null;
  /** The server was away: it is tried again when that is back. */
  waits: boolean;
}

export class Uploads {
  readonly list = signal<Upload[]>([]);
  readonly #underway = new Map<string, AbortController>();

  constructor(private readonly api: Api, private readonly connection: Connection, private readonly pending: Pending) {}

  /** What an earlier life of the page left here. */
  async recall(): Promise<void> {
    const here = new Set(this.list.value.map((upload) => upload.client_id));
    const uploads = (await this.pending.all()).filter(([client_id]) => !here.has(client_id)).map(([client_id, { draft, file }]): Upload => ({ client_id, draft, file, attached: null, problem: null, waits: false }));
    this.list.value = [...uploads, ...this.list.value];
    for (const upload of uploads) void this.#send(upload);
  }

  /** The server is back. */
  wake(): void {
    for (const upload of this.list.value) {
      if (!upload.waits) continue;
      this.#change(upload.client_id, { waits: false });
      void this.#send(upload);
    }
  }

  of(draft: string): Upload[] {
    return this.list.value.filter((upload) => upload.draft === draft);
  }

  /** Takes as many as may still go with the message; says how many may not. */
  add(draft: string, files: File[]): number {
    const taken = files.slice(0, Math.max(0, MOST_FILES - this.of(draft).length));
    const uploads = taken.map((file): Upload => ({ client_id: randomId(), draft, file, attached: null, problem: null, waits: false }));
    this.list.value = [...this.list.value, ...uploads];
    uploads.forEach(({ client_id, file }, index) => this.pending.keep(client_id, { draft, file, order: Date.now() + index }));
    for (const upload of uploads) void this.#send(upload);
    return files.length - taken.length;
  }

  retry(client_id: string): void {
    const upload = this.list.value.find((other) => other.client_id === client_id);
    if (upload === undefined || upload.problem === null) return;
    this.#change(client_id, { problem: null });
    void this.#send(upload);
  }

  remove(client_id: string): void {
    this.#underway.get(client_id)?.abort();
    this.pending.drop(client_id);
    this.list.value = this.list.value.filter((upload) => upload.client_id !== client_id);
  }

  /** What is uploaded, for the message that takes it along. */
  take(draft: string): Attached[] {
    const uploads = this.of(draft);
    for (const { client_id } of uploads) this.remove(client_id);
    return uploads.flatMap(({ attached }) => (attached ? [attached] : []));
  }

  forget(): void {
    for (const { client_id } of this.list.value) this.remove(client_id);
    this.pending.forget();
  }

  /** What was begun as a new conversation is one now. */
  moved(draft: string, to: string): void {
    for (const { client_id, file, ...upload } of this.list.value) if (upload.draft === draft) {
      this.#change(client_id, { draft: to });
      this.pending.keep(client_id, { draft: to, file, order: Date.now() });
    }
  }

  async #send({ client_id, file }: Upload): Promise<void> {
    const abort = new AbortController();
    this.#underway.set(client_id, abort);
    try {
      this.#change(client_id, { attached: await this.api.upload(file, client_id, abort.signal) });
    } catch (error) {
      if (error instanceof SignedOut) this.connection.signedOut();
      if (error instanceof SignedOut || error instanceof Unavailable) this.#change(client_id, { waits: !abort.signal.aborted });
      else this.#change(client_id, { problem: error instanceof Error ? error.message : "It could not be uploaded." });
    } finally {
      this.#underway.delete(client_id);
    }
  }

  #change(client_id: string, changed: Partial<Upload>): void {
    this.list.value = this.list.value.map((upload) => (upload.client_id === client_id ? { ...upload, ...changed } : upload));
  }
}
