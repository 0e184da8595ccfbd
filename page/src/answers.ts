/**
 * The parts of an answer: the texts of its steps, and between them calls and messages the turn took. As on the server, calls have odd
 * numbers in their order and the texts between them even ones, so that a part keeps its id whatever becomes of the texts.
 */

import { type Counted, counted, countPoints, splice, takePoints } from "./codepoints";
import type { BytesPart, Mark, Message, Part, Turn } from "./types";

/** The files of a message. */
export function filesOf(parts: Part[]): BytesPart[] {
  return parts.filter((part): part is BytesPart => part.type === "image" || part.type === "audio" || part.type === "file");
}

/** What a turn started from, if a person asked for it: not what was said later to steer it, and not an answer to one of its questions. */
export function requestOf(messages: Message[], turn: Turn): Message | null {
  const first = messages.find((message) => message.turn_id === turn.id && (message.role === "user" || message.role === "cause") && !message.answers);
  return first?.role === "user" ? first : null;
}

/** The step that is being written: the text before its last call, which is `from` characters long, and the text since, which grows. */
export interface Writing {
  turn_id: string;
  step: number;
  attempt: number;
  before: string;
  from: number;
  tail: Counted;
}

export function isMark(part: Part): part is Mark {
  return part.type === "call" || part.type === "message";
}

function marksOf(parts: Part[], step: number): Mark[] {
  return parts.filter((part): part is Mark => isMark(part) && part.step === step);
}

export function stepText(parts: Part[], step: number): string {
  return parts.map((part) => (part.type === "text" && part.step === step ? part.text : "")).join("");
}

function lastStep(parts: Part[]): number {
  return parts.reduce((last, part) => Math.max(last, part.step ?? 0), 0);
}

/** The last step's text; where it says nothing, the last that was said. */
export function answerText(parts: Part[]): string {
  for (let step = lastStep(parts); step >= 0; step--) {
    const text = stepText(parts, step);
    if (text !== "") return text;
  }
  return "";
}

/** With these parts in the place of those the step had. */
function replaced(parts: Part[], step: number, with_: Part[]): Part[] {
  return [...parts.filter((part) => (part.step ?? 0) < step), ...with_, ...parts.filter((part) => (part.step ?? 0) > step)];
}

/** With this text in the step, its calls standing where they stood. */
export function withText(parts: Part[], turn_id: string, step: number, text: string, marks: Mark[] = marksOf(parts, step)): Part[] {
  const made: Part[] = [];
  const say = (number: number, said: string) => {
    if (said !== "") made.push({ type: "text", id: `${turn_id}.${step}.${number}`, step, text: said });
  };
  let done = "";
  marks.forEach((mark, index) => {
    const until = takePoints(text, mark.offset);
    say(2 * index, until.slice(done.length));
    made.push(mark);
    done = until;
  });
  say(2 * marks.length, text.slice(done.length));
  return replaced(parts, step, made);
}

/** With a call, or a message that was taken, behind the first `offset` characters of the step. */
export function withMark(parts: Part[], turn_id: string, step: number, offset: number, what: { call_id: string } | { message_id: string }): Part[] {
  const marks = marksOf(parts, step);
  const place = { id: `${turn_id}.${step}.${2 * marks.length + 1}`, step, offset: Math.max(offset, marks[marks.length - 1]?.offset ?? 0) };
  const mark: Mark = "call_id" in what ? { type: "call", ...place, ...what } : { type: "message", ...place, ...what };
  return withText(parts, turn_id, step, stepText(parts, step), [...marks, mark]);
}

export function withAttached(parts: Part[], turn_id: string, attached: BytesPart[]): Part[] {
  const step = lastStep(parts);
  const number = 2 * marksOf(parts, step).length + 1;
  return [...parts, ...attached.map((part, index) => ({ ...part, id: `${turn_id}.${step}.${number + index}`, step }))];
}

export function writing(parts: Part[], turn_id: string, step: number, attempt: number): Writing {
  const marks = marksOf(parts, step);
  const from = marks[marks.length - 1]?.offset ?? 0;
  const text = stepText(parts, step);
  const before = takePoints(text, from);
  return { turn_id, step, attempt, before, from, tail: counted(text.slice(before.length)) };
}

/** The step with a piece at an offset, and the parts with it. Appending at the end costs the piece alone. */
export function write(so_far: Writing, parts: Part[], offset: number, piece: string): { writing: Writing; parts: Part[] } {
  const { turn_id, step, attempt, before, from } = so_far;
  const last = parts[parts.length - 1];
  if (offset < from || (last !== undefined && (last.step ?? 0) > step)) {
    const text = splice(counted(before + so_far.tail.text), offset, piece).text;
    const whole = withText(parts, turn_id, step, text);
    return { writing: writing(whole, turn_id, step, attempt), parts: whole };
  }
  const tail = splice(so_far.tail, offset - from, piece);
  const grows = last?.type === "text" && last.step === step;
  const id = grows ? last.id! : `${turn_id}.${step}.${2 * marksOf(parts, step).length}`;
  const kept = grows ? parts.slice(0, -1) : parts;
  return { writing: { ...so_far, tail }, parts: tail.text === "" ? kept : [...kept, { type: "text", id, step, text: tail.text }] };
}

/** A part of an answer as it is drawn, or the row that tells of an interruption, where it happened in the text. */
export type Shown = Part | { type: "cut"; row: Message };

/** The beginning of a text without the word that it ends in the middle of, unless that is very long. */
function wholeWords(text: string, beginning: string): string {
  if (beginning.length === text.length || /\s/.test(text[beginning.length] ?? " ") || /\s$/.test(beginning)) return beginning;
  const space = beginning.search(/\S{1,40}$/);
  return space > 0 && /\s/.test(beginning[space - 1]!) ? beginning.slice(0, space) : beginning;
}

/** The parts of an answer with its interruptions in their places: behind so many characters of a step, or behind all of it. */
export function withCuts(parts: Part[], cuts: Message[]): Shown[] {
  let shown: Shown[] = parts;
  for (const row of cuts) shown = withCut(shown, row);
  return shown;
}

function stepOf(part: Shown): number {
  return part.type === "cut" ? (part.row.step ?? 0) : (part.step ?? 0);
}

/** Whether anything of the step that was interrupted had been written: only that can be written again. The answer so far is its steps, a blank line between each. */
function hadBegun(shown: Shown[], row: Message): boolean {
  const earlier = shown.filter((part) => part.type === "text" && stepOf(part) < (row.step ?? 0)).map((part) => countPoints((part as { text: string }).text) + 2);
  return (row.written ?? 0) > earlier.reduce((sum, each) => sum + each, 0);
}

function withCut(shown: Shown[], row: Message): Shown[] {
  const step = row.step ?? 0;
  const cut: Shown = { type: "cut", row: hadBegun(shown, row) ? row : { ...row, written: 0 } };
  const from = shown.findIndex((part) => stepOf(part) >= step && part.type !== "cut");
  const first = from < 0 ? shown.length : from;
  const later = shown.findIndex((part) => stepOf(part) > step);
  const end = later < 0 ? shown.length : later;
  let left = row.offset === undefined ? (row.written ?? 0) : row.offset;
  if (left === 0) return [...shown.slice(0, first), cut, ...shown.slice(first)];
  for (let index = first; left !== null && index < end; index++) {
    const part = shown[index]!;
    if (part.type !== "text") continue;
    const points = countPoints(part.text);
    if (left > points) {
      left -= points;
      continue;
    }
    const before = wholeWords(part.text, takePoints(part.text, left));
    const pieces: Shown[] = before === "" ? [cut] : [{ ...part, text: before }, cut];
    if (before.length < part.text.length) pieces.push({ ...part, ...(part.id !== undefined && { id: `${part.id}.${row.id}` }), text: part.text.slice(before.length) });
    return [...shown.slice(0, index), ...pieces, ...shown.slice(index + 1)];
  }
  return [...shown.slice(0, end), cut, ...shown.slice(end)];
}
