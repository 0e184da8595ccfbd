import { describe, expect, test } from "vitest";
import { bands, begun, happened, newest, scale, spark, stacks, thinned } from "../src/plots";

describe("a series", () => {
  test("has a newest number only while it is measured", () => {
    expect(newest([1, 2, null])).toBe(2);
    expect(newest([1, null, null, null])).toBeNull();
    expect(newest([])).toBeNull();
  });

  test("of what happens now and then has its newest number, however old, and a line without gaps", () => {
    expect(happened([null, 4, null, 2, null, null])).toEqual({ values: [4, 2], newest: 2, ago: 2 });
    expect(happened([null, null])).toBeNull();
  });

  test("begins where it was first measured, and is never too short", () => {
    expect(begun([null, null, 1, null, 2], 2)).toEqual([1, null, 2]);
    expect(begun([null, null, null, 1], 3)).toEqual([null, null, 1]);
    expect(begun([null, null], 2)).toEqual([]);
  });

  test("is thinned to its highest numbers, and keeps its gaps", () => {
    expect(thinned([1, 5, 2, null, null, null], 3)).toEqual([5, 2, null]);
    expect(thinned([1, 2], 60)).toEqual([1, 2]);
  });

  test("is a line for each stretch without a gap", () => {
    expect(spark([], 90, 30)).toEqual([]);
    expect(spark([null, null], 90, 30)).toEqual([]);
    expect(spark([0, 10, null, 5, 5], 80, 30)).toEqual(["M0.0 29.0L20.0 1.0", "M60.0 15.0L80.0 15.0"]);
    expect(spark([3], 80, 30)).toEqual(["M0.0 1.0h1"]);
    expect(spark([0, 0], 80, 30), "nothing at all lies at the foot").toEqual(["M0.0 29.0L80.0 29.0"]);
  });
});

describe("bands of time", () => {
  const at = (ms: number): string => new Date(ms).toISOString();
  const band = (since: number, ended: number | null, holds = false): { since: string; ended_at: string | null; holds: boolean } => ({ since: at(since), ended_at: ended === null ? null : at(ended), holds });
  const seen = (...all: Parameters<typeof bands>[0]): unknown => bands(all, 1000, 2000, 100).map(({ from, to, ms, told }) => [from, to, ms, told]);

  test("lie within the hours that are shown, and say how long they were in all", () => {
    expect(seen(band(100, 900), band(800, 1200), band(1500, 2500))).toEqual([[1000, 1200, 400, true], [1500, 2000, 1000, true]]);
  });

  test("last until now while they hold, and are a moment where no end is known", () => {
    expect(seen(band(1500, null), band(1900, null, true))).toEqual([[1500, 1500, null, true], [1900, 2000, 100, true]]);
  });

  test("have words only some way from each other", () => {
    expect(seen(band(1100, 1102), band(1150, 1152), band(1210, 1212))).toEqual([[1100, 1102, 2, true], [1150, 1152, 2, false], [1210, 1212, 2, true]]);
  });
});

describe("a stacked plot", () => {
  const rows = [
    { day: "2026-01-02", name: "a", value: 1 },
    { day: "2026-01-01", name: "c", value: 4 },
    { day: "2026-01-01", name: "a", value: 2 },
    { day: "2026-01-01", name: "b", value: 3 },
  ];

  test("has its days in order and its parts in the order of their names", () => {
    expect(stacks(rows, ["a", "b", "c"], 4, "rest")).toEqual([
      { day: "2026-01-01", total: 9, parts: [{ name: "a", value: 2 }, { name: "b", value: 3 }, { name: "c", value: 4 }] },
      { day: "2026-01-02", total: 1, parts: [{ name: "a", value: 1 }] },
    ]);
  });

  test("puts what is beyond the first few together", () => {
    expect(stacks(rows, ["a", "b", "c"], 2, "rest")[0]).toEqual({ day: "2026-01-01", total: 9, parts: [{ name: "a", value: 2 }, { name: "rest", value: 7 }] });
  });

  test.each([[0, 1], [3, 5], [5, 5], [51, 100], [0.03, 0.05]])("%d is drawn to a scale up to %d", (highest, top) => {
    expect(scale(highest)).toBeCloseTo(top, 10);
  });
});
