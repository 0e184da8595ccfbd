/** Images, recordings and files of a message. */

import type { ComponentChildren, VNode } from "preact";
import { filesOf } from "../answers";
import { addressOf } from "../api";
import { t } from "../i18n";
import type { BytesPart, Part } from "../types";
import { size } from "../words";
import { FileIcon } from "./icons";

/** Pictures that a browser only draws. Everything else, SVG too, is a file to be saved. */
const DRAWN = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);

export function Attachment(props: { part: BytesPart }): VNode {
  const { part } = props;
  const name = part.name ?? (part.type === "image" ? t().conversation.image : part.type === "audio" ? t().conversation.recording : t().conversation.file);
  if (part.type === "image" && DRAWN.has(part.media_type)) {
    return <a class="picture" href={addressOf(part)} download={name} data-testid="attachment"><img src={addressOf(part)} alt={name} title={name} loading="lazy" /></a>;
  }
  return (
    <a class="file" href={addressOf(part)} download={name} data-testid="attachment">
      <FileIcon /><span class="file-name">{name}</span><span class="file-size">{size(part.size)}</span>
    </a>
  );
}

/** A file that is on its way, with what can be done about it. */
export function FileChip(props: { name: string | null; size: number; note?: string | null; children?: ComponentChildren }): VNode {
  return (
    <span class="file" data-testid="file">
      <FileIcon /><span class="file-name">{props.name ?? t().conversation.file}</span><span class="file-size">{props.note ?? size(props.size)}</span>{props.children}
    </span>
  );
}

/** Those of a message, below its text; nothing where it has none. */
export function Attachments(props: { parts: Part[] }): VNode | null {
  const attached = filesOf(props.parts);
  if (attached.length === 0) return null;
  return <div class="attachments">{attached.map((part, index) => <Attachment key={`${part.digest}.${index}`} part={part} />)}</div>;
}
