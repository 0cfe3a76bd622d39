// The result of a count of failed events: the question whether to send them, or a notice that there are none.

import { path } from "./api.js";
import { h } from "./dom.js";
import { titleOf } from "./event-types.js";
import { form } from "./forms.js";
import { capital, count, list, time } from "./format.js";
import { notice } from "./ui.js";
import { called } from "./webhook-list.js";
import { waitingWords } from "./webhook-trouble.js";

/** Returns the notice for a count without events. `endpoint` as it is now. */
export const none = endpoint =>
  notice(
    "calm",
    "There is nothing to send again",
    h(
      "p",
      {},
      "No event of that time has failed. ",
      "Test events, events of erased clients, and those that were sent again in the last hour are left out.",
    ),
    waitingWords(endpoint),
  );

/**
 * Returns the question whether to send the events that were counted. `wanted`: the body of the request; `found`: the
 * answer of the service, with `more` if there are too many to count.
 */
export function question({ endpoint, types, base, wanted, found, page }) {
  const atLeast = ({ more }) => (more ? "at least " : "");
  const events = `${atLeast(found)}${count(found.deliveries, "event")}`;
  return notice(
    "warn",
    `Send ${events} again?`,
    form(
      {
        submit: `Send ${events} again`,
        send: async (_, once) => {
          const sent = await once.post(`${base}/recover`, wanted);
          const words = `${atLeast(sent)}${count(sent.deliveries, "event is", "events are")} being sent again.`;
          page.go(path`/webhooks/${endpoint.id}`, capital(words));
        },
      },
      h(
        "p",
        {},
        "They go to ",
        called(endpoint),
        ", with the ids that they had: a system that got one of them already can tell.",
      ),
      h(
        "p",
        {},
        "They were created since ",
        time(wanted.since),
        wanted.until && [" and before ", time(wanted.until)],
        ".",
      ),
      wanted.types && h("p", {}, `Only: ${list(wanted.types.map(type => titleOf(types, type)))}.`),
    ),
  );
}
