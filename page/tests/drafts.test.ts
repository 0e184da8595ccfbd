import { afterEach, expect, test, vi } from "vitest";
import { KeptDrafts } from "../src/drafts";
import { Drafts, SafeStorage } from "../src/storage";
import type { Draft } from "../src/types";

afterEach(() => vi.useRealTimers());

test("what is typed in one conversation is kept although something is typed in another right after it", async () => {
  vi.useFakeTimers();
  const kept: [string, string][] = [];
  const storage = new SafeStorage(null);
  const drafts = new Drafts(storage);
  const api = {
    draft: async (): Promise<Draft> => ({ text: "", rev: 0 }),
    keepDraft: async (id: string, draft: Draft): Promise<Draft> => {
      kept.push([id, draft.text]);
      return { ...draft, rev: draft.rev + 1 };
    },
  };
  const device = new KeptDrafts(api, drafts, storage, () => undefined);
  const type = (session: string, text: string): void => {
    drafts.set(session, text);
    device.changed(session);
  };
  type("a", "ha");
  type("a", "half a thought");
  type("b", "another");
  await vi.runAllTimersAsync();
  expect(kept).toEqual([["a", "half a thought"], ["b", "another"]]);
});
