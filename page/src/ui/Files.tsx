import type { VNode } from "preact";
import { useRef } from "preact/hooks";
import { FileChip } from "./Attachments";
import { ClipIcon, CloseIcon } from "./icons";
import { IconButton, useApp } from "./shared";
import { t } from "../i18n";

/** Takes files along with the next message of what is open. */
export function useAttach(): (files: FileList | null | undefined) => boolean {
  const app = useApp();
  return (files) => {
    if (!files || files.length === 0) return false;
    app.attach(app.draftName, [...files]);
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
      <IconButton label={t().composer.attach} testid="attach" onClick={() => input.current!.click()}><ClipIcon /></IconButton>
    </>
  );
}

/** The files of the message that is being written. */
export function Files(): VNode | null {
  const app = useApp();
  const uploads = app.uploads.of(app.draftName);
  if (uploads.length === 0) return null;
  return (
    <div class="files" role="group" aria-label={t().composer.files} data-testid="files">
      {uploads.map(({ client_id, file, attached, problem, waits }) => (
        <FileChip key={client_id} name={file.name} size={file.size} note={problem ?? (attached ? null : waits ? t().composer.waitsForServer : t().composer.uploading)}>
          {problem !== null && <button type="button" class="link" onClick={() => app.uploads.retry(client_id)}>{t().common.tryAgain}</button>}
          <IconButton label={t().composer.remove(file.name)} onClick={() => app.uploads.remove(client_id)}><CloseIcon /></IconButton>
        </FileChip>
      ))}
    </div>
  );
}
