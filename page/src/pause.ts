/** A wait that can be cut short: by `wake`, because there is reason to try now, or by the end of what waits. */
export class Pause {
  #wake: (() => void) | null = null;

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        if (this.#wake === done) this.#wake = null;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#wake = done;
      if (signal?.aborted) done();
      else signal?.addEventListener("abort", done);
    });
  }

  wake(): void {
    this.#wake?.();
  }
}
