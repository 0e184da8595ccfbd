import { expect, test } from "vitest";
import { GROUP, grouped, PLAIN } from "../src/groups";

const rows = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => ({ key: `m${from + index}` }));
const keys = (groups: { key: string }[][]) => groups.map((group) => group[0]!.key);
const known = (groups: { key: string }[][]) => new Set(keys(groups));

test("a short conversation has no groups", () => {
  for (const size of [0, 1, PLAIN, PLAIN + GROUP - 1]) {
    const { groups, plain } = grouped(rows(0, size), new Set());
    expect([groups.length, plain.length]).toEqual([0, size]);
  }
});

test("every row is there once, in its order, and a hundred or more stand alone", () => {
  for (const size of [120, 139, 140, 777]) {
    const all = rows(0, size);
    const { groups, plain } = grouped(all, new Set());
    expect([...groups.flat(), ...plain]).toEqual(all);
    expect(plain.length).toBeGreaterThanOrEqual(PLAIN);
    expect(plain.length).toBeLessThan(PLAIN + GROUP);
  }
});

test("an earlier page of any length leaves the groups that are there as they are", () => {
  let first = 1000;
  let before = grouped(rows(first, 1300), new Set()).groups;
  for (const more of [100, 93, 1, 19, 260]) {
    first -= more;
    const all = rows(first, 1300);
    const after = grouped(all, known(before));
    expect([...after.groups.flat(), ...after.plain]).toEqual(all);
    for (const group of before) expect(after.groups).toContainEqual(group);
    before = after.groups;
  }
});

test("what is said later moves no group, and fills new ones behind the others", () => {
  let before = grouped(rows(0, 200), new Set()).groups;
  for (let size = 201; size < 330; size++) {
    const { groups, plain } = grouped(rows(0, size), known(before));
    expect(groups.slice(0, before.length)).toEqual(before);
    expect(plain.length).toBeLessThan(PLAIN + GROUP);
    before = groups;
  }
  expect(before.length).toBe(11);
});

test("a conversation that is read again from its end begins with no group where a hundred rows are left", () => {
  const before = grouped(rows(0, 400), new Set()).groups;
  expect(grouped(rows(270, 400), known(before)).groups.length).toBe(2);
  expect(grouped(rows(300, 400), known(before)).groups.length).toBe(0);
});
