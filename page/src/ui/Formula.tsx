import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { visibleCode } from "../words";
import { memo } from "./shared";

/** A formula as MathML, by Temml, which is fetched when the first one is there. One that cannot be read stands as it was written. */
export const Formula = memo<{ text: string; block: boolean }>(({ text, block }): VNode => {
  const place = useRef<HTMLSpanElement>(null);
  const [drawn, setDrawn] = useState(false);
  useEffect(() => {
    let over = false;
    void import("temml").then(({ default: temml }) => {
      if (over || place.current === null) return;
      try {
        temml.render(text, place.current, { displayMode: block, trust: false, throwOnError: true, maxExpand: 200 });
        setDrawn(true);
      } catch {
        setDrawn(false);
      }
    }, () => undefined);
    return () => { over = true; };
  }, [text, block]);
  const body = <><span ref={place} hidden={!drawn} />{!drawn && <code>{visibleCode(text)}</code>}</>;
  return block ? <div class="math-block" tabIndex={0}>{body}</div> : <span class="math">{body}</span>;
});
