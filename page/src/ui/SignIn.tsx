import type { VNode } from "preact";
import { useState } from "preact/hooks";
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
  return (
    <main class="sign-in">
      <div data-testid="connection" data-state="signed-out" role="status" class="sr-only">Signed out</div>
      <div class="sign-in-card">
        <Mark size={56} />
        <h1>Holdfast</h1>
        <p>
          On the machine where Holdfast runs, type <code>holdfast open</code> (in the project’s folder: <code>./run open</code>). Open the link it prints, or paste the link here.
        </p>
        <p class="quiet">
          The token works, too: <code>holdfast token</code> prints it.
        </p>
        <form onSubmit={(event) => { event.preventDefault(); void signIn(); }}>
          <label for="token">Link or token</label>
          <input id="token" type="password" data-testid="token" value={token} autocomplete="current-password" autofocus onInput={(event) => setToken(event.currentTarget.value)} />
          <button type="submit" class="primary" data-testid="sign-in" disabled={busy || token.trim() === ""}>{busy ? "Signing in…" : "Sign in"}</button>
        </form>
        {app.signInProblem.value && <p class="problem" role="alert">{app.signInProblem.value}</p>}
        <p class="quiet">What you have typed and not sent is kept on this device.</p>
      </div>
    </main>
  );
}
