import type { VNode } from "preact";
export function Details(_: { sheet: boolean }): VNode { return <></>; }
