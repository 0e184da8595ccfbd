import type { VNode } from "preact";
import { Mark } from "./icons";
import { useApp } from "./shared";

const TRY: readonly (readonly [string, string])[] = [
  ["count 60 0.05", "an answer that takes a while, piece by piece"],
  ["run date", "a real command, with its output"],
  ["ask What is your name?", "a question that waits for you, also across restarts"],
  ["hang", "a turn that never ends by itself: stop it"],
];

export function Welcome(): VNode {
  const app = useApp();
  return (
    <div class="welcome">
      <span class="welcome-mark"><Mark size={64} /></span>
      <h2>It holds.</h2>
      <p>Write below, or try one of these. Whatever happens to the server in the middle of an answer, the conversation continues.</p>
      <ul class="suggestions">
        {TRY.map(([text, what]) => (
          <li key={text}>
            <button type="button" class="suggestion" data-testid="suggestion" onClick={() => app.send(text)}>
              <code>{text}</code><span>{what}</span>
            </button>
          </li>
        ))}
      </ul>
      <p class="dare">Then, in a terminal, <code>kill -9</code> me in the middle.</p>
    </div>
  );
}
