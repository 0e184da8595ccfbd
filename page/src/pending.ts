/** Files that are not with the server yet, on this device: a reload, or a browser that is closed, does not lose them. */

import { clear, createStore, del, entries, set } from "idb-keyval";

export interface KeptFile {
  draft: string;
  file: File;
  /** Keeps the order in which they were chosen. */
  order: number;
}

export class Pending {
  readonly #store = typeof indexedDB === "undefined" ? null : createStore("holdfast-files", "files");

  async all(): Promise<[string, KeptFile][]> {
    if (this.#store === null) return [];
    const found = (await entries<string, KeptFile>(this.#store).catch(() => [])) as [string, KeptFile][];
    return found.filter(([, kept]) => kept?.file instanceof File).sort(([, a], [, b]) => a.order - b.order);
  }

  /** Where there is no room, the file is uploaded all the same, and lost only with this page. */
  keep(client_id: string, kept: KeptFile): void {
    if (this.#store !== null) void set(client_id, kept, this.#store).catch(() => undefined);
  }

  drop(client_id: string): void {
    if (this.#store !== null) void del(client_id, this.#store).catch(() => undefined);
  }

  forget(): void {
    if (this.#store !== null) void clear(this.#store).catch(() => undefined);
  }
}
