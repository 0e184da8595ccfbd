import type { RefObject, VNode } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../i18n";
import { useApp } from "./shared";

/** A dialog that is open while its signal says so, and says so when it is closed. */
export function useDialog(open: boolean, closed: () => void): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  // At once: a key that is pressed right after it was asked for is for the dialog.
  useLayoutEffect(() => {
    const element = dialog.current;
    if (element === null) return;
    if (open && !element.open) element.showModal();
    if (!open && element.open) element.close();
  }, [open]);
  useEffect(() => {
    const element = dialog.current;
    element?.addEventListener("close", closed);
    return () => element?.removeEventListener("close", closed);
  }, []);
  return dialog;
}

/** What the keyboard does. */
export function Keys(): VNode {
  const app = useApp();
  const open = app.showingKeys.value;
  const dialog = useDialog(open, () => (app.showingKeys.value = false));
  return (
    <dialog class="dialog" ref={dialog} aria-labelledby="keys-title" data-testid="keys-dialog">
      {open && (
        <div>
          <h2 id="keys-title">{t().keys.title}</h2>
          <dl class="keys">{t().keys.rows.map(([key, does]) => <><dt><kbd>{key}</kbd></dt><dd>{does}</dd></>)}</dl>
          <div class="foot"><button type="button" class="b" onClick={() => dialog.current?.close()}>{t().common.close}</button></div>
        </div>
      )}
    </dialog>
  );
}
