// The TypeScript client that openapi-generator makes, as the sender of the requests that mistakes.py makes, and as the
// client with which trial.py tries a sandbox. Takes the path of the client's index.ts, which Node runs as it is. A line
// of stdin is a call {operation, base, key, input}. A line of stdout is `answer` with {exchange, code, value}: the
// `Exchange` of request_log.py, and the refusal's code or the value, as the client gives them.

import assert from 'node:assert/strict';
import readline from 'node:readline';

const library = await import(process.argv[2]);
const { ClientsApi, CRMBookingsApi, KeyApi, SandboxApi, Configuration, ResponseError } = library;

// The models do not forbid the mistakes.
const operations = {
  create: ({ clients }, { email, name, reference }) =>
    clients.createClientRaw({ createClient: { email, fullName: name, sendWelcome: false }, idempotencyKey: reference }),
  read: ({ clients }, { text }) => clients.listClientsRaw({ cursor: text }),
  read_client: ({ clients }, { client }) => clients.readClientRaw({ clientId: client }),
  find_request: ({ keys }, { request }) => keys.listOwnRequestsRaw({ requestId: request }),
  find_times: ({ bookings }, { lead, calendar }) =>
    bookings.findTimesRaw({ findTimes: { leadId: lead, calendarId: calendar } }),
  book: ({ bookings }, { lead, calendar, date, time, reference }) =>
    bookings.createBookingRaw({
      createBooking: { leadId: lead, calendarId: calendar, date: new Date(date), time },
      idempotencyKey: reference,
    }),
  // A body is named by its model.
  sandbox: ({ sandbox }, { name, model, body, query }) => {
    const given = model ? { [model[0].toLowerCase() + model.slice(1)]: library[`${model}FromJSON`](body) } : {};
    return sandbox[`${name}Raw`]({ ...given, ...query });
  },
};

async function call({ operation, base, key, input }) {
  let exchange;
  const post = async ({ url, init, response }) => {
    const { method, headers: sent, body = null } = init;
    const { status } = response;
    const headers = Object.fromEntries(response.headers);
    exchange = { method, url, sent, body, status, headers, answer: await response.clone().text() };
  };
  const configuration = new Configuration({ basePath: base, accessToken: key, middleware: [{ post }] });
  const apis = {
    bookings: new CRMBookingsApi(configuration),
    clients: new ClientsApi(configuration),
    keys: new KeyApi(configuration),
    sandbox: new SandboxApi(configuration),
  };
  try {
    const answer = await operations[operation](apis, input);
    return { exchange, code: null, value: await answer.value() };
  } catch (error) {
    assert.ok(error instanceof ResponseError, error);
    return { exchange, code: (await error.response.json()).code, value: null };
  }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  console.log(`answer ${JSON.stringify(await call(JSON.parse(line)))}`);
}
