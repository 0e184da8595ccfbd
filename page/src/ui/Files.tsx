import type { VNode } from "preact";
import { useRef } from "preact/hooks";
import { FileChip } from "./Attachments";
import { ClipIcon, CloseIcon } from "./icons";
import { IconButton, useApp } from "./shared";
import { MOST_FILES } from "../uploads";

/** Takes files along with the next message of what is open. */
export function useAttach(): (files: FileList | null | undefined) => boolean {
  const app = useApp();
  return (files) => {
    if (!files || files.length === 0) return false;
    const over = app.uploads.add(app.draftName, [...files]);
    if (over > 0) app.say(`A message takes ${MOST_FILES} files; ${over} more ${over === 1 ? "was" : "were"} left out.`);
    return true;
  };
}

export function AttachButton(): VNode {
  const attach = useAttach();
  const input = useRef<HTMLInputElement>(null);
  const chosen = (): void => {
    attach(input.current!.files);
    input.current!.value = "";
  };
  return (
    <>
      <input ref={input} type="file" multiple hidden data-testid="attach-files" onChange={chosen} />
      <IconButton label="Attach files" testid="attach" onClick={() => input.current!.click()}><ClipIcon /></IconButton>
    </>
  );
}

/** The files of the message that is being written. */
export function Files(): VNode | null {
  const app = useApp();
  const uploads = app.uploads.of(app.draftName);
  if (uploads.length === 0) return null;
  return (
    <div class="files" role="group" aria-label="Files of this message" data-testid="files">
      {uploads.map(({ client_id, file, attached, problem }) => (
        <FileChip key={client_id} name={file.name} size={file.size} note={problem ?? (attached ? null : "uploading…")}>
          {problem !== null && <button type="button" class="text-button" onClick={() => app.uploads.retry(client_id)}>Try again</button>}
          <IconButton label={`Remove ${file.name}`} onClick={() => app.uploads.remove(client_id)}><CloseIcon /></IconButton>
        </FileChip>
      ))}
    </div>
  );
}
