import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { t } from "../i18n";
import { Mark } from "./icons";
import { useApp } from "./shared";

export function SignIn(): VNode {
  const app = useApp();
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const signIn = async (): Promise<void> => {
    if (token.trim() === "" || busy) return;
    setBusy(true);
    await app.signInByPasting(token.trim());
    setBusy(false);
  };
  const words = t().signIn;
  return (
    <main class="sign-in">
      <div data-testid="connection" data-state="signed-out" role="status" class="sr-only">{words.out}</div>
      <div class="sign-in-card">
        <Mark size={52} />
        <h1>Holdfast</h1>
        <p>{words.how[0]} <code>holdfast open</code> {words.how[1]} <code>./run open</code>{words.how[2]}</p>
        <p class="quiet">{words.token[0]} <code>holdfast token</code> {words.token[1]}</p>
        <form onSubmit={(event) => { event.preventDefault(); void signIn(); }}>
          <label for="token">{words.field}</label>
          <input id="token" type="password" data-testid="token" value={token} autocomplete="current-password" autofocus onInput={(event) => setToken(event.currentTarget.value)} />
          <button type="submit" class="b kelp" data-testid="sign-in" disabled={busy || token.trim() === ""}>{busy ? words.busy : words.button}</button>
        </form>
        {app.signInProblem.value && <p class="problem" role="alert">{app.signInProblem.value}</p>}
        <p class="quiet">{words.kept}</p>
      </div>
    </main>
  );
}
