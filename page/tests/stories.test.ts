/// <reference types="vite/client" />
import { describe, expect, test } from "vitest";
import { apply, type LogEvent, viewOf } from "../src/log";
import type { Session } from "../src/types";
import raw from "./stories.json?raw";

interface Story {
  seed: number;
  events: LogEvent[];
  snapshots: [number, Session][];
  end: Session;
}

const stories = JSON.parse(raw) as Story[];
const said = ({ messages, turns, questions, usage }: Session) => ({ messages, turns, questions, usage });

describe("what the page folds is what the server shows", () => {
  test.each(stories.map((story) => [story.seed, story] as const))("story %i", (_, story) => {
    for (const [left, snapshot] of story.snapshots) {
      const view = story.events.slice(left).reduce(apply, viewOf(snapshot));
      expect(said(view.session), `from ${left}`).toEqual(said(story.end));
    }
  });
});
