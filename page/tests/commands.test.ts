import { describe, expect, test } from "vitest";
import { isCommand, learn, offered, written } from "../src/commands";
import { titleFrom } from "../src/outbox";

const COMMANDS = ["stop", "new", "sessions", "status", "queue", "steer", "interrupt", "help"].map((name) => (
  { name, form: `/${name}`, sentence: "", sends: ["queue", "steer", "interrupt"].includes(name) }
));
learn(COMMANDS);

const names = (typed: string) => offered(typed).map((command) => command.name);

describe("commands", () => {
  test("a slash offers all of them, letters narrow them, anything else ends the offer", () => {
    expect(offered("/")).toEqual(COMMANDS);
    expect(names("/s")).toEqual(["stop", "sessions", "status", "steer"]);
    expect(names("/STO")).toEqual(["stop"]);
    for (const typed of ["", "/usr", "/queue ", " /stop", "say /stop", "/stop\n"]) expect(names(typed), typed).toEqual([]);
  });

  test("a chosen one that needs an argument waits for it", () => {
    expect(COMMANDS.map(written)).toEqual(["/stop", "/new", "/sessions", "/status", "/queue ", "/steer ", "/interrupt ", "/help"]);
  });

  test("what the gateway takes for a command is one here too", () => {
    for (const text of ["/stop", "/stop ", "/resume 2", "/Help@holdfast", "/unknown", "/queue"]) expect(isCommand(text), text).toBe(true);
    for (const text of ["stop", " /stop", "/usr/bin/env", "/", "/1", "/queue more words", "/steer left", "/interrupt now"]) expect(isCommand(text), text).toBe(false);
  });

  test("a command does not name the conversation it begins", () => {
    expect(titleFrom("/help")).toBe("");
    expect(titleFrom("/usr/bin/env")).toBe("/usr/bin/env");
  });
});
