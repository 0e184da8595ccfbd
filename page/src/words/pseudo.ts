/** English, two fifths longer: what a translation may do to the drawing. For tests. */

import { en, type Words } from "./en";

function longer(value: unknown): unknown {
  if (typeof value === "string") return value.length < 2 || /^[\d\W]+$/.test(value) ? value : `[${value}${"~".repeat(Math.ceil(value.length * 0.4))}]`;
  if (typeof value === "function") return (...given: unknown[]) => longer((value as (...given: unknown[]) => unknown)(...given));
  if (Array.isArray(value)) return value.map(longer);
  if (typeof value === "object" && value !== null) return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, longer(each)]));
  return value;
}

export const pseudo = { ...(longer(en) as Words), code: "en" };
