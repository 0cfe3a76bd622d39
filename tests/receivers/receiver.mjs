// A receiver for webhooks. The guide to verifying shows it from the first blank line on; tests/verification runs it.

import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.WEBHOOK_SECRET);

// Stores the event. Returns false if it is stored already. Synchronous, so that no other request comes between.
function store(id, body) {
  if (existsSync(`inbox/${id}`)) return false;
  writeFileSync("inbox/draft", body);
  renameSync("inbox/draft", `inbox/${id}`); // atomic
  return true;
}

function work(id, event) {
  console.log("accepted", id, event.type);
}

async function receive(request) {
  const body = await buffer(request); // the raw bytes
  let event;
  try {
    event = webhook.verify(body, request.headers);
  } catch {
    return 400;
  }
  const id = request.headers["webhook-id"];
  if (store(id, body)) setImmediate(work, id, event);
  return 204;
}

mkdirSync("inbox", { recursive: true });
const server = createServer(async (request, response) => {
  const status = await receive(request).catch(() => 500);
  response.writeHead(status).end();
});
server.listen(process.env.PORT ?? 9000);
