// The screen of one request of another system.

import { getPage } from "./api.js";
import { copyButton } from "./copy.js";
import { code, h, userText } from "./dom.js";
import { duration, exactTime } from "./format.js";
import { knownKeys } from "./key-list.js";
import { asked, explanation, keyLink, outcomeBadges } from "./request-words.js";
import { ApiError } from "./request.js";
import { facts } from "./ui.js";

const SECOND_MS = 1_000;

export async function requestScreen({ id }, page) {
  const [request, known] = await Promise.all([read(id, page), knownKeys(page.signal)]);
  const title = asked(request);
  const shown = code(id);
  return {
    title,
    heading: [title, " ", outcomeBadges(request)],
    parent: { href: "/requests", text: "Requests" },
    content: [
      facts([
        ["What happened", (request.code || request.replayed) && explanation(request)],
        ["Key", keyLink(known, request.key_id)],
        ["When", exactTime(request.at)],
        ["It took", duration(request.duration_ms)],
        ["Assistant", request.tool && [userText(request.client ?? "unnamed"), ", with its tool ", code(request.tool)]],
        ["Id of the request", [shown, " ", copyButton("The id of the request", () => id, shown, "bare")]],
      ]),
      h(
        "details",
        {},
        h("summary", {}, "For your developer"),
        facts([
          ["Method and path", code(`${request.method} ${request.route}`)],
          ["Answer", [request.status, request.code && [", ", code(request.code)]]],
          ["Id in the path", request.target && code(request.target)],
          ["Parameters", request.parameters.length > 0 && code(request.parameters.join(", "))],
          [
            "Idempotency key",
            request.idempotency_key_sha256 && ["Its SHA-256 begins with ", code(request.idempotency_key_sha256)],
          ],
          ["User agent", request.user_agent && userText(request.user_agent)],
        ]),
      ),
    ],
  };
}

const iso = at => new Date(at).toISOString();

/** Reads a request by its id. There is no index of ids: the time of the address says where to look. */
async function read(id, { query, signal }) {
  const since = Date.parse(query.get("at"));
  const period = since && { since: iso(since), until: iso(since + SECOND_MS) };
  const { items } = await getPage("/settings/requests", { request_id: id, ...period, limit: 1 }, signal);
  if (!items.length) throw new ApiError("refused", "", { status: 404, code: "not_found" });
  return items[0];
}
