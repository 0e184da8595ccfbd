/** Which language the page speaks. Dictionaries other than English are fetched when they are wanted. */

import { signal } from "@preact/signals";
import { en, type Words } from "./words/en";

export type { Words };

/** `pseudo` is for tests: every word is longer, as in some other language. */
export const LANGUAGES = [["en", "English"], ["de", "Deutsch"]] as const;

const spoken = signal<Words>(en);

/** The words of the language that is spoken now. Whoever draws with them is drawn again when it changes. */
export function t(): Words {
  return spoken.value;
}

/** For dates and numbers. */
export function locale(): string {
  return spoken.value.code;
}

/** What the browser asks for, where nobody has chosen. */
export function preferred(wanted: readonly string[]): string {
  return wanted.some((each, index) => each.toLowerCase().startsWith("de") && !wanted.slice(0, index).some((before) => before.toLowerCase().startsWith("en"))) ? "de" : "en";
}

export async function speak(code: string): Promise<void> {
  try {
    if (code === "de") spoken.value = (await import("./words/de")).de;
    else if (code === "pseudo") spoken.value = (await import("./words/pseudo")).pseudo;
    else spoken.value = en;
  } catch {
    return; // The file is gone after an upgrade, or nobody answers: the words stay those they were.
  }
  document.documentElement.lang = spoken.value.code;
}
