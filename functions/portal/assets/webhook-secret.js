// The secret of a webhook: replacing it, and until when the old one works.

import { get, path } from "./api.js";
import { LIMITS } from "./domain.js";
import { confirm } from "./dialogs.js";
import { h } from "./dom.js";
import { time } from "./format.js";
import { now } from "./service-clock.js";
import { button } from "./ui.js";
import { lastUse, secretDialog } from "./webhook-actions.js";
import { called } from "./webhook-list.js";

const HOUR_MS = 3_600_000;
const AUDIT_LINES = 100;

/**
 * Returns until when the secret works that was replaced last, or null. An endpoint does not have this time, the audit
 * trail has it.
 */
export async function endOfOldSecret({ id }, signal) {
  const { data } = await get("/settings/audit", { limit: AUDIT_LINES }, signal);
  const replaced = data.find(({ action, target }) => action === "endpoint.secret_rotated" && target === id);
  if (!replaced) return null;
  const end = new Date(new Date(replaced.at).getTime() + LIMITS.secretOverlapHours * HOUR_MS);
  return end > now() ? end.toISOString() : null;
}

/** "Replace the secret". */
export const replaceSecret = (endpoint, page) =>
  endpoint.status !== "gone" &&
  button("Replace the secret", async () => {
    const used = await lastUse(endpoint);
    if (page.signal.aborted) return;
    let rotated;
    const done = await confirm({
      title: "Replace the secret?",
      verb: "Replace the secret",
      words: [
        h(
          "p",
          {},
          called(endpoint),
          ` needs the new secret within ${LIMITS.secretOverlapHours} hours. Until then both secrets are good; after that it refuses the events if it has only the old one.`,
        ),
        h("p", {}, "Do this if the secret was lost or somebody else may have seen it. ", used),
      ],
      run: async (_, once) => {
        rotated = await once.post(path`/settings/webhooks/${endpoint.id}/rotate-secret`);
      },
    });
    if (!done) return;
    await secretDialog("The new secret", rotated, h("p", {}, `The old secret works for ${LIMITS.secretOverlapHours} hours more.`));
    if (page.signal.aborted) return;
    const until = await endOfOldSecret(endpoint, page.signal).catch(() => null);
    page.go(path`/webhooks/${endpoint.id}`, ["The secret is replaced.", until && [" The old one works until ", time(until), "."]]);
  });
