/** What the parts of the drawing share. */

import { type ReadonlySignal, useComputed } from "@preact/signals";
import { Component, type ComponentChildren, type ComponentType, createContext, type TargetedMouseEvent, type VNode } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import type { App } from "../app";
import { t } from "../i18n";
import { type Overview, summaryOf } from "../log";
import { clock, moment } from "../words";
import { CheckIcon, CopyIcon } from "./icons";

export const AppContext = createContext<App | null>(null);

export function useApp(): App {
  return useContext(AppContext)!;
}

export function sameProps(before: object, after: object): boolean {
  const keys = Object.keys(after) as (keyof typeof after)[];
  return keys.length === Object.keys(before).length && keys.every((key) => Object.is(before[key], after[key]));
}

/** Draws `Inner` again only when one of its properties is another value. What cannot be drawn says so, and takes nothing else with it. */
export function memo<P extends object>(Inner: ComponentType<P>, same: (before: P, after: P) => boolean = sameProps): ComponentType<P> {
  return class extends Component<P, { failed: boolean }> {
    override state = { failed: false };

    static override getDerivedStateFromError(): { failed: boolean } {
      return { failed: true };
    }

    override shouldComponentUpdate(next: P, state: { failed: boolean }): boolean {
      return state.failed !== this.state.failed || !same(this.props as P, next);
    }

    override render(props: P, state: { failed: boolean }): VNode {
      return state.failed ? <p class="undrawn">{t().common.undrawn}</p> : <Inner {...props} />;
    }
  } as unknown as ComponentType<P>;
}

/** Computed from signals, and the same value while all its fields are the same: whoever draws with it is not drawn again for nothing. */
export function useSame<T extends object>(compute: () => T | null): ReadonlySignal<T | null> {
  const last = useRef<T | null>(null);
  return useComputed(() => {
    const next = compute();
    if (next === null || last.current === null || !sameProps(last.current, next)) last.current = next;
    return last.current;
  });
}

/** The open conversation as a whole; null where none is open. It is the same for all the pieces of an answer. */
export function useOpen(): Overview | null {
  const app = useApp();
  return useSame(() => {
    const view = app.route.value.session === null ? null : app.conversation.view.value;
    return view && summaryOf(view.session);
  }).value;
}

export function IconButton(props: {
  label: string; onClick: () => void; children: ComponentChildren; pressed?: boolean; expanded?: boolean; disabled?: boolean; class?: string; testid?: string;
}): VNode {
  return (
    <button
      type="button" class={`ib ${props.class ?? ""}`} aria-label={props.label} title={props.label} onClick={props.onClick}
      {...(props.pressed !== undefined && { "aria-pressed": props.pressed })} {...(props.expanded !== undefined && { "aria-expanded": props.expanded })}
      disabled={props.disabled ?? false} data-testid={props.testid}
    >
      {props.children}
    </button>
  );
}

export function Time(props: { at: string; seconds?: boolean }): VNode {
  return <time class="time num" dateTime={props.at} title={moment(props.at)}>{clock(props.at, props.seconds)}</time>;
}

/** The time in milliseconds, from second to second while it matters. */
export function useNow(matters: boolean, every_ms = 1000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!matters) return;
    const timer = setInterval(() => setNow(Date.now()), every_ms);
    return () => clearInterval(timer);
  }, [matters, every_ms]);
  return now;
}

/** True on devices whose main pointer is a finger: there a focused field brings up a keyboard nobody asked for. */
export function isTouch(): boolean {
  return window.matchMedia("(pointer: coarse)").matches;
}

export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => window.matchMedia(query).matches);
  useEffect(() => {
    const list = window.matchMedia(query);
    const changed = (): void => setMatches(list.matches);
    changed();
    list.addEventListener("change", changed);
    return () => list.removeEventListener("change", changed);
  }, [query]);
  return matches;
}

/** A plain click stays in the page; one that asks for another tab or window is the browser's. */
export function plainClick(then: () => void): (event: TargetedMouseEvent<HTMLAnchorElement>) => void {
  return (event) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    then();
  };
}

/** The browser offers the clipboard only to secure pages: elsewhere nothing can be copied by a button. */
export function canCopy(): boolean {
  return navigator.clipboard !== undefined;
}

export function Copy(props: { text: string | (() => string); label: string; word?: boolean }): VNode | null {
  const [copied, setCopied] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  if (!canCopy()) return null;
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(typeof props.text === "string" ? props.text : props.text());
    setCopied(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setCopied(false), 1500);
  };
  const icon = copied ? <CheckIcon /> : <CopyIcon />;
  if (!props.word) return <button type="button" class="ib" data-testid="copy" aria-label={props.label} title={props.label} onClick={() => void copy()}>{icon}</button>;
  return <button type="button" class="copy" onClick={() => void copy()} aria-label={props.label}>{icon}<span>{copied ? t().common.copied : t().common.copy}</span></button>;
}
