import type { VNode } from "preact";
export function Operations(): VNode { return <></>; }
