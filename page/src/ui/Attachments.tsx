/** Images, recordings and files of a message. */

import type { VNode } from "preact";
import type { BytesPart, Part } from "../types";
import { size } from "../words";
import { FileIcon } from "./icons";

/** Pictures that a browser only draws. Everything else, SVG too, is a file to be saved. */
const DRAWN = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);

function address(part: BytesPart): string {
  return `/api/blobs/${encodeURIComponent(part.digest)}${part.name === null ? "" : `?name=${encodeURIComponent(part.name)}`}`;
}

export function Attachment(props: { part: BytesPart }): VNode {
  const { part } = props;
  const name = part.name ?? (part.type === "image" ? "Image" : part.type === "audio" ? "Recording" : "File");
  if (part.type === "image" && DRAWN.has(part.media_type)) {
    return <a class="picture" href={address(part)} download={name} data-testid="attachment"><img src={address(part)} alt={name} title={name} loading="lazy" /></a>;
  }
  return (
    <a class="file" href={address(part)} download={name} data-testid="attachment">
      <FileIcon /><span class="file-name">{name}</span><span class="file-size">{size(part.size)}</span>
    </a>
  );
}

/** Those of a message, below its text; nothing where it has none. */
export function Attachments(props: { parts: Part[] }): VNode | null {
  const attached = props.parts.filter((part): part is BytesPart => part.type === "image" || part.type === "audio" || part.type === "file");
  if (attached.length === 0) return null;
  return <div class="attachments">{attached.map((part, index) => <Attachment key={`${part.digest}.${index}`} part={part} />)}</div>;
}
