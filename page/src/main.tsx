import { render } from "preact";
import { App } from "./app";
import "./style/tokens.css";
import "./style/base.css";
import "./style/rooms.css";
import "./style/conversation.css";
import "./style/composer.css";
import "./style/details.css";
import "./style/operations.css";
import "./style/phone.css";
import { SafeStorage } from "./storage";
import { Page } from "./ui/Page";

const app = new App((path, init) => fetch(path, init), SafeStorage.ofBrowser());
render(<Page app={app} />, document.getElementById("page")!);
void app.start();
if ("serviceWorker" in navigator) navigator.serviceWorker.register("/sw.js").catch(() => undefined); // The page works without it.
