import type { ComponentChildren, VNode } from "preact";
import type { Shape, Sign } from "../words";

/** A holdfast: what kelp grips its rock with, and two blades. */
export function Mark(props: { size?: number }): VNode {
  const size = props.size ?? 24;
  return (
    <svg class="mark" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.9" stroke-linecap="round">
      <path d="M12 15V4" />
      <path d="M12 9.4C9.6 9.2 8 7.6 7.6 5c2.6.2 4.2 1.8 4.4 4.4ZM12 12.6c2.6 0 4.6-1.6 5-4.6-2.8.2-4.8 1.8-5 4.6Z" fill="currentColor" stroke="none" opacity=".75" />
      <path d="M12 15c-1 2.6-3 4.4-6.4 5.2M12 15c1 2.6 3 4.4 6.4 5.2M12 15c-.6 2.4-1.2 4-2.6 6M12 15c.6 2.4 1.2 4 2.6 6" />
    </svg>
  );
}

function Icon(props: { children: ComponentChildren; small?: boolean; class?: string }): VNode {
  return <svg class={`i${props.small ? " s" : ""}${props.class ? ` ${props.class}` : ""}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">{props.children}</svg>;
}

export const MenuIcon = (): VNode => <Icon><path d="M2.6 4.6h10.8M2.6 8h10.8M2.6 11.4h7" /></Icon>;
export const PlusIcon = (): VNode => <Icon><path d="M8 3.2v9.6M3.2 8h9.6" /></Icon>;
export const SearchIcon = (): VNode => <Icon><circle cx="7" cy="7" r="4.3" /><path d="m10.4 10.4 3 3" /></Icon>;
export const DotsIcon = (): VNode => <Icon><path d="M3.4 8h.01M8 8h.01M12.6 8h.01" stroke-width="2.2" /></Icon>;
export const PanelIcon = (): VNode => <Icon class="turns"><rect x="1.8" y="2.8" width="12.4" height="10.4" rx="2" /><path d="M10 2.8v10.4" /></Icon>;
export const SideIcon = (): VNode => <Icon class="turns"><rect x="1.8" y="2.8" width="12.4" height="10.4" rx="2" /><path d="M6 2.8v10.4" /></Icon>;
export const PinIcon = (): VNode => <Icon><path d="M6 2.4h4l-.4 4.2 2 2.2v1.2H4.4V8.8l2-2.2L6 2.4ZM8 10v3.8" /></Icon>;
export const ArchiveIcon = (): VNode => <Icon><path d="M2.2 3.4h11.6v3H2.2zM3.4 6.4v6.2h9.2V6.4M6.4 9h3.2" /></Icon>;
export const PenIcon = (): VNode => <Icon><path d="m3 13 .7-2.7 6.9-6.9a1.2 1.2 0 0 1 1.7 0l.3.3a1.2 1.2 0 0 1 0 1.7L5.7 12.3 3 13Z" /></Icon>;
export const TrashIcon = (): VNode => <Icon><path d="M2.8 4.2h10.4M6.2 4.2V2.8h3.6v1.4M4.2 4.2l.6 9h6.4l.6-9M6.8 6.8v4M9.2 6.8v4" /></Icon>;
export const SendIcon = (): VNode => <Icon><path d="M8 13V3.4M4 7.2 8 3.2l4 4" /></Icon>;
export const StopIcon = (): VNode => <Icon small><rect x="4" y="4" width="8" height="8" rx="1.5" class="full" /></Icon>;
export const PauseIcon = (): VNode => <Icon small><path d="M5.6 3.6v8.8M10.4 3.6v8.8" stroke-width="2" /></Icon>;
export const PlayIcon = (): VNode => <Icon small><path d="M5 3.2v9.6L12.6 8Z" class="full" /></Icon>;
export const RestartIcon = (): VNode => <Icon small><path d="M2.4 5.6h9M8.8 3l2.6 2.6L8.8 8.2M13.6 10.4h-9M7.2 7.8l-2.6 2.6 2.6 2.6" /></Icon>;
export const FileIcon = (): VNode => <Icon><path d="M4 2.2h5L12 5.2v8.6H4zM9 2.2v3h3" /></Icon>;
export const ClipIcon = (): VNode => <Icon><path d="m12.8 7.4-5 5a3 3 0 0 1-4.2-4.2l5.4-5.4a2 2 0 0 1 2.8 2.8l-5.2 5.2a1 1 0 0 1-1.4-1.4l4.6-4.6" /></Icon>;
export const TerminalIcon = (): VNode => <Icon><rect x="1.8" y="2.8" width="12.4" height="10.4" rx="2" /><path d="m4.6 6 2 2-2 2M8.6 10.2h2.8" /></Icon>;
export const ToolIcon = (): VNode => <Icon><path d="M9.6 3.2a3.4 3.4 0 0 0-3.2 4.6l-3.8 3.8 1.8 1.8 3.8-3.8a3.4 3.4 0 0 0 4.4-4.4l-2 2-1.8-1.8 2-2c-.4-.2-.8-.2-1.2-.2Z" /></Icon>;
export const BellIcon = (): VNode => <Icon><path d="M4 11.4V7a4 4 0 0 1 8 0v4.4l1 .8H3l1-.8ZM6.8 14h2.4" /></Icon>;
export const ChevronIcon = (): VNode => <Icon small class="fold turns"><path d="m6 4 4 4-4 4" /></Icon>;
export const BackIcon = (): VNode => <Icon class="turns"><path d="m10 4-4 4 4 4" /></Icon>;
export const DownIcon = (): VNode => <Icon><path d="M8 3v9.6M4 8.8l4 4 4-4" /></Icon>;
export const CloseIcon = (): VNode => <Icon><path d="m4 4 8 8m0-8-8 8" /></Icon>;
export const CopyIcon = (): VNode => <Icon small><rect x="5.4" y="5.4" width="8" height="8" rx="1.4" /><path d="M10.4 5.4V2.8H2.6v7.8h2.8" /></Icon>;
export const CheckIcon = (): VNode => <Icon small><path d="m3.2 8.4 3.2 3.2 6.4-7" /></Icon>;
export const QuoteIcon = (): VNode => <Icon small><path d="M3 9.4h3V6.2H3v3.2c0 1.6.6 2.6 2 3.2M10 9.4h3V6.2h-3v3.2c0 1.6.6 2.6 2 3.2" /></Icon>;
export const RetryIcon = (): VNode => <Icon small><path d="M12.8 8a4.8 4.8 0 1 1-1.4-3.4L13 6.2M13 2.8v3.4H9.6" /></Icon>;
export const BranchIcon = (): VNode => <Icon small><circle cx="4.4" cy="3.6" r="1.6" /><circle cx="4.4" cy="12.4" r="1.6" /><circle cx="11.6" cy="5.6" r="1.6" /><path d="M4.4 5.2v5.6M11.6 7.2c0 2.4-3.6 1.6-6 3.8" /></Icon>;
export const ExportIcon = (): VNode => <Icon><path d="M8 9.6V2.4M5.2 5 8 2.2 10.8 5M3 8.6v4.8h10V8.6" /></Icon>;
export const KeysIcon = (): VNode => <Icon><rect x="1.6" y="4" width="12.8" height="8" rx="1.6" /><path d="M4.2 6.6h.01M6.8 6.6h.01M9.4 6.6h.01M12 6.6h.01M5 9.4h6" /></Icon>;
export const OutIcon = (): VNode => <Icon class="turns"><path d="M9.6 2.8H3.4v10.4h6.2M7 8h6.4M11 5.4 13.6 8 11 10.6" /></Icon>;
export const PulseIcon = (): VNode => <Icon><path d="M1.6 8.4h3l1.8-4.6 3 8.4 1.8-3.8h3.2" /></Icon>;
export const DiamondIcon = (): VNode => <Icon><path d="M8 2.2 13.8 8 8 13.8 2.2 8Z" /></Icon>;
export const InboxIcon = (): VNode => <Icon><path d="m2 9 2-5.6h8L14 9v3.6H2ZM2 9h3.4l1 1.6h3.2l1-1.6H14" /></Icon>;
export const PlugIcon = (): VNode => <Icon><path d="M5.6 2.4v3M10.4 2.4v3M4 5.4h8v2.2a4 4 0 0 1-8 0ZM8 11.6v2.2" /></Icon>;
export const ChipIcon = (): VNode => <Icon><rect x="4" y="4" width="8" height="8" rx="1.4" /><path d="M6.4 1.8V4M9.6 1.8V4M6.4 12v2.2M9.6 12v2.2M1.8 6.4H4M1.8 9.6H4M12 6.4h2.2M12 9.6h2.2" /></Icon>;
export const CoinIcon = (): VNode => <Icon><circle cx="8" cy="8" r="5.8" /><path d="M9.8 6.2C9.4 5.4 6.4 5 6.4 6.8c0 1.6 3.4.8 3.4 2.4 0 1.8-3.2 1.4-3.6.4M8 4.4v7.2" /></Icon>;
export const LogIcon = (): VNode => <Icon><path d="M3 4h10M3 7h10M3 10h6" /></Icon>;
export const ClockIcon = (): VNode => <Icon><circle cx="8" cy="8" r="5.8" /><path d="M8 4.8V8l2.2 1.6" /></Icon>;
export const ShieldIcon = (): VNode => <Icon><path d="M8 1.8 13 4v3.8c0 3-2 5.2-5 6.4-3-1.2-5-3.4-5-6.4V4Z" /><path d="m5.8 8 1.6 1.6 3-3.2" /></Icon>;

const PLATFORMS: Record<string, ComponentChildren> = {
  web: <><circle cx="8" cy="8" r="5.8" /><path d="M2.2 8h11.6M8 2.2c2 2 2 9.6 0 11.6M8 2.2c-2 2-2 9.6 0 11.6" /></>,
  telegram: <path d="m2 7.6 11.6-5-2 10.8-4-2.8-2 2V9.4L11 5.2 4.2 8.6Z" />,
  slack: <path d="M6.4 2.4 5 13.6M11 2.4 9.6 13.6M2.8 5.8h11M2.2 10.2h11" />,
  matrix: <path d="M5 2.4H2.8v11.2H5M11 2.4h2.2v11.2H11M6 7v3M6 8.2c.4-1 2-1 2 .2V10M8 8.4c.4-1 2-1 2 .2V10" />,
};
const CHAT = <path d="M2.4 3.2h11.2v7.6H7.2L4.4 13v-2.2h-2Z" />;

export function PlatformIcon(props: { platform: string; small?: boolean }): VNode {
  return <Icon small={props.small ?? false}>{PLATFORMS[props.platform] ?? CHAT}</Icon>;
}

const line = { fill: "none", stroke: "currentColor", "stroke-width": "1.8", "stroke-linecap": "round", "stroke-linejoin": "round" } as const;

const SHAPES: Record<Shape, ComponentChildren> = {
  queued: <circle cx="8" cy="8" r="4.6" {...line} />,
  running: <circle cx="8" cy="8" r="4.5" class="full alive" />,
  waiting: <path d="M8 2.2 13.8 8 8 13.8 2.2 8Z" class="full" />,
  interrupted: <><path d="M8 1v4M8 11v4" {...line} /><path d="m4.6 6.2 6.8 3.6M11.4 6.2 4.6 9.8" {...line} /></>,
  resumed: <><path d="M8 1v2.4M8 12.6V15" {...line} /><circle cx="8" cy="8" r="4.2" {...line} /><circle cx="8" cy="8" r="1.5" class="full" /></>,
  superseded: <path d="M1.6 8h2.8M6.6 8h2.8M11.6 8h2.8" {...line} />,
  unknown: <><circle cx="8" cy="8" r="5.6" {...line} stroke-width="1.6" stroke-dasharray="2.6 1.9" /><path d="M6.6 6.7a1.45 1.45 0 1 1 2 1.35c-.45.2-.6.5-.6.95" {...line} stroke-width="1.4" /><circle cx="8" cy="10.9" r=".85" class="full" /></>,
  "not-repeated": <><circle cx="8" cy="8" r="5.6" {...line} stroke-width="1.6" /><path d="M5.4 8h5.2" {...line} /></>,
  done: <path d="m3.2 8.4 3.2 3.2 6.4-7" {...line} stroke-width="2" />,
  delivered: <path d="m1.4 8.6 3 3 5.4-6.4M7.4 11.4l.4.4 6.2-7" {...line} />,
  failed: <path d="m4 4 8 8m0-8-8 8" {...line} stroke-width="2" />,
  suspended: <rect x="3.4" y="3.4" width="9.2" height="9.2" rx="1.6" {...line} />,
  "hand-over": <><path d="M1.5 5.5h7.2M7.3 10.5h7.2" {...line} stroke-width="2.4" /><path d="M8.2 5.5v5" {...line} stroke-width="1.3" stroke-dasharray="1.6 1.4" /></>,
  accepted: <><circle cx="8" cy="8" r="5.4" {...line} /><circle cx="8" cy="8" r="2" class="full" /></>,
  tool: <rect x="3.6" y="3.6" width="8.8" height="8.8" rx="2" class="full" />,
  next: <circle cx="8" cy="8" r="4" {...line} />,
};

export function ShapeIcon(props: { shape: Shape; class?: string }): VNode {
  return <svg class={props.class} viewBox="0 0 16 16" aria-hidden="true" focusable="false">{SHAPES[props.shape]}</svg>;
}

/** A state: its shape and its word. */
export function StateSign(props: { sign: Sign; pill?: boolean }): VNode {
  const { sign } = props;
  return <span class={`st ${sign.tone}${props.pill ? " pill" : ""}`}><ShapeIcon shape={sign.shape} />{sign.text}</span>;
}
