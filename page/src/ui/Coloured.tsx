/** Code in colours. What colours it is fetched when the first code is there, and each language when it is; until then, and where that fails, the code stands as it is. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Grammar, Tree } from "../colours";
import { memo } from "./shared";

/** Longer code is not coloured: it would hold up the page. */
const MOST = 50_000;

export const Coloured = memo<{ language: string; text: string }>(({ language, text }) => {
  const [tree, setTree] = useState<Tree | null>(null);
  useEffect(() => {
    if (language === "" || text.length > MOST) return setTree(null);
    let over = false;
    void import("../colours").then((colours) => colours.coloured(language.toLowerCase(), text)).then((found) => { if (!over) setTree(found); }, () => undefined);
    return () => { over = true; };
  }, [language, text]);
  return tree === null ? <>{text}</> : <>{tree.children.map(drawn)}</>;
});

function drawn(node: Grammar, index: number): ComponentChildren {
  if (node.type === "text") return node.value;
  return <span key={index} class={node.className}>{node.children.map(drawn)}</span>;
}

