// Starts the portal: waits for the session, then shows the screen that the address names.

import { announce } from "./announce.js";
import { forgetRequests } from "./api.js";
import * as coach from "./coach.js";
import { closeDialogs, confirm } from "./dialogs.js";
import { fill, h, userText } from "./dom.js";
import { TITLE_PREFIX } from "./domain.js";
import { hasDraft } from "./drafts.js";
import { FRAMED } from "./frame.js";
import { ApiError } from "./request.js";
import * as router from "./router.js";
import * as session from "./session.js";
import { stateFor } from "./states.js";
import { activity } from "./activity.js";
import { createKey } from "./key-create.js";
import { keyScreen } from "./key.js";
import { changeEvents } from "./key-events.js";
import { keys } from "./keys.js";
import { overview } from "./overview.js";
import { requestScreen } from "./request-detail.js";
import { requests } from "./requests.js";
import { webhookRoutes } from "./webhook-routes.js";

const ROUTES = [
  ["/", overview],
  ["/keys", keys],
  ["/keys/new", createKey],
  ["/keys/:id", keyScreen],
  ["/keys/:id/events", changeEvents],
  ...webhookRoutes,
  ["/requests", requests],
  ["/requests/:id", requestScreen],
  ["/activity", activity],
];

const main = document.getElementById("main");
const header = document.getElementById("header");

// A link with another token was opened in a page that runs already.
addEventListener("hashchange", event => {
  const token = session.takeFromAddress(event.oldURL);
  if (token === null) return;
  event.stopImmediatePropagation();
  if (FRAMED) return;
  if (coach.current()) askToGoOn(token);
  else goOn(token);
});

coach.onCoach((present, former) => {
  fill(document.getElementById("workspace"), "Workspace: ", userText(present.name));
  if (!former || former.coach_id === present.coach_id) return;
  forgetRequests();
  closeDialogs();
  router.startOver([
    "This is the workspace of ",
    userText(present.name),
    " now. What was not finished in the workspace of ",
    userText(former.name),
    " is dropped.",
  ]);
});

signIn();

async function signIn() {
  const heading = h("h1", { tabindex: "-1" }, "Private integrations");
  const isRetry = main.contains(document.activeElement);
  fill(main, heading, h("p", { class: "loading" }, "Signing you in…"));
  if (isRetry) heading.focus();
  if (await session.other()) return begin();
  const { title, content } = stateFor({ kind: FRAMED ? "no-answer" : "no-session" }, signIn);
  document.title = TITLE_PREFIX + title;
  fill(heading, title);
  main.lastChild.replaceWith(content);
  announce(title);
}

function begin() {
  header.hidden = false;
  return router.start(ROUTES, main);
}

/** Goes on with the token of a link, before the page has shown anybody's workspace. */
function goOn(token) {
  session.replace(token);
  return header.hidden ? begin() : router.refresh();
}

/** Goes on with the token of a link: at once if it is the same coach's, else if the coach wants to. */
async function askToGoOn(token) {
  const present = coach.current();
  const owner = await coach.ownerOf(token).catch(() => null);
  if (owner?.coach_id === present.coach_id) {
    coach.become(owner, token);
    return hasDraft() || document.querySelector("dialog") ? undefined : router.refresh();
  }
  await confirm({
    title: owner ? ["Go on as ", userText(owner.name), "?"] : "Go on with the session of the link?",
    verb: "Go on",
    words: [
      h("p", {}, "This page shows the workspace of ", userText(present.name), ". A link wants to change that."),
      h("p", {}, "What you have not saved here is dropped."),
    ],
    run: async () => coach.become(owner ?? (await coach.ownerOf(token).catch(ofLink)), token),
  });
}

/** Says of a token that the service refuses that the link is to blame, not the session. */
function ofLink(error) {
  if (error.kind !== "session") throw error;
  throw new ApiError("refused", "This link does not sign you in any more. Open this page from your application again.");
}
