import { render } from "preact";
import { App } from "./app";
import "./style.css";
import { SafeStorage } from "./storage";
import { Page } from "./ui/Page";

const app = new App((path, init) => fetch(path, init), SafeStorage.ofBrowser());
render(<Page app={app} />, document.getElementById("page")!);
void app.start();
