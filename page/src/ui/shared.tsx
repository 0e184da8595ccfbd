/** What the parts of the drawing share. */

import { Component, type ComponentChildren, type ComponentType, createContext, type VNode } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { App } from "../app";

export const AppContext = createContext<App | null>(null);

export function useApp(): App {
  return useContext(AppContext)!;
}

function sameProps(before: object, after: object): boolean {
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
      return state.failed ? <p class="undrawn">This part could not be shown.</p> : <Inner {...props} />;
    }
  } as unknown as ComponentType<P>;
}

export function IconButton(props: {
  label: string; onClick: () => void; children: ComponentChildren; pressed?: boolean; disabled?: boolean; class?: string; testid?: string;
}): VNode {
  return (
    <button
      type="button" class={`icon-button ${props.class ?? ""}`} aria-label={props.label} title={props.label} onClick={props.onClick}
      {...(props.pressed !== undefined && { "aria-pressed": props.pressed })} disabled={props.disabled ?? false} data-testid={props.testid}
    >
      {props.children}
    </button>
  );
}

/** The time in milliseconds, from second to second while it matters. */
export function useNow(matters: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!matters) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [matters]);
  return now;
}

/** True on devices whose main pointer is a finger: there a focused field brings up a keyboard nobody asked for. */
export function isTouch(): boolean {
  return window.matchMedia("(pointer: coarse)").matches;
}
