/** A button that opens a list of things to do. Arrow keys move, Escape and a click elsewhere close, and the focus comes back. */

import type { ComponentChildren, VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { IconButton } from "./shared";

export function Menu(props: { label: string; icon: ComponentChildren; children: ComponentChildren; class?: string; place?: string; testid?: string }): VNode {
  const [open, setOpen] = useState(false);
  const place = useRef<HTMLSpanElement>(null);
  // At once: whoever presses a key right after opening it must not find the focus elsewhere later.
  useLayoutEffect(() => {
    if (!open) return;
    items(place.current)[0]?.focus();
    const outside = (event: Event): void => {
      if (!place.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
    };
  }, [open]);
  const close = (): void => {
    setOpen(false);
    place.current?.querySelector<HTMLElement>(":scope > .ib")?.focus();
  };
  const pressed = (event: KeyboardEvent): void => {
    if (!open) return;
    if (event.key === "Escape" || event.key === "Tab") {
      if (event.key === "Escape") event.preventDefault();
      event.stopPropagation();
      return close();
    }
    const found = items(place.current);
    const at = found.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: found.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    found[(to + found.length) % found.length]?.focus();
  };
  return (
    <span class={`menu-place ${props.class ?? ""}`} ref={place} onKeyDown={pressed}>
      <IconButton label={props.label} expanded={open} {...(props.testid && { testid: props.testid })} onClick={() => setOpen(!open)}>{props.icon}</IconButton>
      {open && <div class={`menu ${props.place ?? ""}`} role="menu" aria-label={props.label} onClick={(event) => { if ((event.target as Element).closest("[role^=menuitem]")) close(); }}>{props.children}</div>}
    </span>
  );
}

function items(place: HTMLElement | null): HTMLElement[] {
  return [...(place?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
}

export function MenuItem(props: { onClick: () => void; icon: VNode; children: ComponentChildren; danger?: boolean; testid?: string }): VNode {
  return (
    <button type="button" role="menuitem" tabIndex={-1} class={props.danger ? "danger" : ""} data-testid={props.testid} onClick={props.onClick}>
      {props.icon}<span>{props.children}</span>
    </button>
  );
}

export function MenuChoice(props: { onClick: () => void; icon: VNode; chosen: boolean; children: ComponentChildren; testid?: string; box?: boolean }): VNode {
  return (
    <button type="button" role={props.box ? "menuitemcheckbox" : "menuitemradio"} aria-checked={props.chosen} tabIndex={-1} data-testid={props.testid} onClick={props.onClick}>
      {props.icon}<span>{props.children}</span>
    </button>
  );
}
