import type { RefObject, TargetedKeyboardEvent, VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * A text field that grows with its text. Enter submits, Shift+Enter begins a new line, and an Enter that ends the input of a composed
 * character does neither. `onKey` sees every other key first, and says whether it has dealt with it; `offers` names the list that is
 * open for the field, and what is chosen there.
 */
export function Field(props: {
  value: string; onInput: (value: string) => void; onSubmit: () => void; label: string; placeholder: string; testid: string;
  id?: string; disabled?: boolean; field?: RefObject<HTMLTextAreaElement | null>; onBlur?: () => void;
  onKey?: (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => boolean; offers?: { list: string; chosen: string } | null;
}): VNode {
  const own = useRef<HTMLTextAreaElement>(null);
  const field = props.field ?? own;
  useLayoutEffect(() => {
    const element = field.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight}px`;
  }, [props.value]);
  return (
    <textarea
      ref={field} id={props.id} class="field" rows={1} aria-label={props.label} placeholder={props.placeholder} data-testid={props.testid}
      value={props.value} disabled={props.disabled ?? false} enterkeyhint="send" autocomplete="off" spellcheck
      {...(props.offers && { "aria-autocomplete": "list", "aria-haspopup": "listbox", "aria-controls": props.offers.list, "aria-activedescendant": props.offers.chosen })}
      onBlur={props.onBlur}
      onInput={(event) => props.onInput(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.isComposing || event.keyCode === 229) return;
        if (props.onKey?.(event)) return event.preventDefault();
        if (event.key !== "Enter" || event.shiftKey) return;
        event.preventDefault();
        props.onSubmit();
      }}
    />
  );
}
