/** What this browser's user has chosen for the page: kept here, because it belongs to the device. */

import { signal } from "@preact/signals";
import { preferred, speak } from "./i18n";
import type { Store } from "./outbox";

export type Theme = "system" | "light" | "dark";

const THEMES: readonly string[] = ["system", "light", "dark"];

export class Preferences {
  readonly theme = signal<Theme>("system");
  readonly language = signal("en");
  /** Whether the list of conversations is shown on a wide screen. */
  readonly list = signal(true);
  readonly notifying = signal(false);

  constructor(private readonly store: Store) {
    this.read();
  }

  /** Again, when another tab has changed something. */
  read(): void {
    const theme = this.store.getItem("holdfast.theme") ?? "system";
    this.#draw(THEMES.includes(theme) ? (theme as Theme) : "system");
    this.#say(this.store.getItem("holdfast.language") ?? preferred(navigator.languages ?? []));
    this.list.value = this.store.getItem("holdfast.list") !== "hidden";
    this.notifying.value = this.store.getItem("holdfast.notify") === "yes" && "Notification" in window && Notification.permission === "granted";
    // For those whose language runs the other way, and for tests.
    const direction = this.store.getItem("holdfast.direction");
    if (direction === "rtl") document.documentElement.dir = "rtl";
  }

  setTheme(theme: Theme): void {
    this.store.setItem("holdfast.theme", theme);
    this.#draw(theme);
  }

  setLanguage(code: string): void {
    this.store.setItem("holdfast.language", code);
    this.#say(code);
  }

  setList(shown: boolean): void {
    this.store.setItem("holdfast.list", shown ? "shown" : "hidden");
    this.list.value = shown;
  }

  setNotifying(on: boolean): void {
    this.store.setItem("holdfast.notify", on ? "yes" : "no");
    this.notifying.value = on;
  }

  #draw(theme: Theme): void {
    this.theme.value = theme;
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }

  #say(code: string): void {
    this.language.value = code;
    void speak(code);
  }
}
