import type { ComponentChildren, VNode } from "preact";

/** A holdfast: what kelp grips its rock with, and two blades. */
export function Mark(props: { size?: number }): VNode {
  const size = props.size ?? 26;
  return (
    <svg class="mark" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <g fill="none" stroke="currentColor" stroke-width="1.9" stroke-linecap="round">
        <path d="M16 17.5C14.4 13.5 17.8 9.5 16 4M16 17v11M16 17c-.8 4.6-3.8 5.5-5 10.5M16 17c.8 4.6 3.8 5.5 5 10.5M16 16.5c-2.5 4.5-7.8 3.7-10 9.5M16 16.5c2.5 4.5 7.8 3.7 10 9.5" />
      </g>
      <path class="mark-blade" d="M16.7 9.2c3.6-.2 6.5-2.2 7.6-5.4-3.8-.2-6.7 1.8-7.6 5.4ZM15.6 13.4c-1.3-3.7-4.1-5.7-7.8-5.6 1 3.6 3.9 5.8 7.8 5.6ZM16 15.6c2.8.3 5.1-1 6.3-3.4-2.8-.6-5.2.6-6.3 3.4Z" />
    </svg>
  );
}

function Icon(props: { children: ComponentChildren; filled?: boolean }): VNode {
  return (
    <svg
      width="18" height="18" viewBox="0 0 20 20" fill={props.filled ? "currentColor" : "none"} stroke="currentColor" stroke-width="1.6"
      stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false"
    >
      {props.children}
    </svg>
  );
}

export const MenuIcon = (): VNode => <Icon><path d="M3 6h14M3 10h14M3 14h9" /></Icon>;
export const PlusIcon = (): VNode => <Icon><path d="M10 4v12M4 10h12" /></Icon>;
export const SearchIcon = (): VNode => <Icon><circle cx="9" cy="9" r="5.2" /><path d="m13 13 3.5 3.5" /></Icon>;
export const PinIcon = (props: { filled?: boolean }): VNode => (
  <Icon filled={props.filled ?? false}><path d="M7.5 3h5l-.6 5.2 2.6 2.8v1.5h-9V11l2.6-2.8L7.5 3ZM10 12.5V17" /></Icon>
);
export const ArchiveIcon = (): VNode => <Icon><path d="M3 4.5h14V8H3zM4.5 8v7.5h11V8M8 11h4" /></Icon>;
export const UnarchiveIcon = (): VNode => <Icon><path d="M3 4.5h14V8H3zM4.5 8v7.5h11V8M10 13.5v-3.5M8.2 11.5 10 9.8l1.8 1.7" /></Icon>;
export const PenIcon = (): VNode => <Icon><path d="m4 16 .8-3.2L13.3 4.3a1.4 1.4 0 0 1 2 0l.4.4a1.4 1.4 0 0 1 0 2L7.2 15.2 4 16Z" /></Icon>;
export const SendIcon = (): VNode => <Icon><path d="M10 16V4.5M5 9.2l5-5 5 5" /></Icon>;
export const StopIcon = (): VNode => <Icon filled><rect x="5.5" y="5.5" width="9" height="9" rx="1.5" /></Icon>;
export const FileIcon = (): VNode => <Icon><path d="M5.5 3h6L15 6.5V17H5.5zM11.5 3v3.5H15" /></Icon>;
export const ClipIcon = (): VNode => <Icon><path d="m6.5 10.5 4.8-4.8a2.4 2.4 0 0 1 3.4 3.4l-6 6a3.9 3.9 0 0 1-5.5-5.5l6-6" /></Icon>;
export const ToolIcon = (): VNode => <Icon><path d="m4 6 4 4-4 4M10.5 14.5H16" /></Icon>;
export const ChevronIcon = (): VNode => <Icon><path d="m7 5 5.5 5L7 15" /></Icon>;
export const DownIcon = (): VNode => <Icon><path d="M10 4v11.5M5 11l5 5 5-5" /></Icon>;
export const CloseIcon = (): VNode => <Icon><path d="m5 5 10 10M15 5 5 15" /></Icon>;
export const KnotIcon = (): VNode => <Icon><path d="M10 2.5v4M10 13.5v4M6.5 10c0-4.5 7-4.5 7 0s-7 4.5-7 0Z" /></Icon>;
export const CopyIcon = (): VNode => <Icon><rect x="7" y="7" width="9" height="9" rx="1.5" /><path d="M13 7V4.5H4V13h3" /></Icon>;
export const CheckIcon = (): VNode => <Icon><path d="m4.5 10.5 3.5 3.5 7.5-8" /></Icon>;
