// Starts the portal: waits for the session, then shows the screen that the address names.

import { fill, h } from "./dom.js";
import * as router from "./router.js";
import * as session from "./session.js";
import { stateFor } from "./states.js";
import { activity } from "./activity.js";
import { createKey } from "./key-create.js";
import { keyScreen } from "./key.js";
import { keys } from "./keys.js";
import { overview } from "./overview.js";
import { webhookRoutes } from "./webhook-routes.js";

const ROUTES = [
  ["/", overview],
  ["/keys", keys],
  ["/keys/new", createKey],
  ["/keys/:id", keyScreen],
  ...webhookRoutes,
  ["/activity", activity],
];

const main = document.getElementById("main");
const nav = document.getElementById("nav");

let running = false;

// A link with another token was opened in a page that runs already.
addEventListener("hashchange", event => {
  if (!session.takeFromAddress()) return;
  event.stopImmediatePropagation();
  begin();
});

session.reportHeight();
fill(main, h("h1", {}, "Private integrations"), h("p", { class: "loading" }, "Signing you in…"));
session.start().then(found => (found ? begin() : refuse()));

function begin() {
  nav.hidden = false;
  if (running) return router.refresh();
  running = true;
  return router.start(ROUTES, main);
}

function refuse() {
  const { title, content } = stateFor({ kind: "no-session" });
  document.title = title;
  fill(main, h("h1", { tabindex: "-1" }, title), content);
}
