// Starts the portal: waits for the session, then shows the screen that the address names.

import { announce } from "./announce.js";
import { get } from "./api.js";
import { closeDialogs } from "./dialogs.js";
import { fill, h } from "./dom.js";
import { dropDraft, hasDraft } from "./drafts.js";
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

let coach = null;

// A link with another token was opened in a page that runs already.
addEventListener("hashchange", event => {
  if (!session.takeFromAddress()) return;
  event.stopImmediatePropagation();
  if (coach) changeSession(event.oldURL);
  else begin();
});

session.reportHeight();
signIn();

async function signIn() {
  const heading = h("h1", { tabindex: "-1" }, "Private integrations");
  const isRetry = main.contains(document.activeElement);
  fill(main, heading, h("p", { class: "loading" }, "Signing you in…"));
  if (isRetry) heading.focus();
  if (await session.start()) return begin();
  const { title, content } = stateFor({ kind: session.FRAMED ? "no-answer" : "no-session" }, signIn);
  document.title = title;
  fill(heading, title);
  main.lastChild.replaceWith(content);
  announce(title);
}

function begin() {
  if (coach) return;
  nav.hidden = false;
  coach = readCoach();
  return router.start(ROUTES, main);
}

/** Goes on with a new session. The same coach keeps an open form or dialog; another coach must see nothing of it. */
async function changeSession(oldURL) {
  const former = await coach;
  coach = readCoach();
  if (former !== null && former === (await coach)) {
    history.replaceState(null, "", oldURL);
    return hasDraft() || document.querySelector("dialog") ? undefined : router.refresh();
  }
  dropDraft();
  closeDialogs();
  return router.refresh();
}

/** Reads the id of the coach, or null before the application's first message about the workspace. */
const readCoach = () =>
  get("/settings/workspace").then(
    workspace => workspace.coach_id,
    () => null,
  );
