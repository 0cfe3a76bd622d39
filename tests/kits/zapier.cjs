// The Zapier app: validates its definition with zapier-platform-schema, then runs its parts with zapier-platform-core
// against a stack. Takes the paths of zapier-platform-core and of the app. The first line of stdin is {base, key,
// keyWithoutEvents, type, references, noReferences, guide}, `references` being references with their hashes. Each line
// after it is a call {part, base, key, input}. For each, a line of stdout is `answer`, with what was checked or with
// the call's `Exchange` of request_log.py.

'use strict';

const assert = require('node:assert');
const Module = require('node:module');
const readline = require('node:readline');

const [core, file] = process.argv.slice(2);
// The app finds the library as it does in a folder of its own.
const resolve = Module._resolveFilename;
Module._resolveFilename = (name, ...rest) => resolve(name === 'zapier-platform-core' ? core : name, ...rest);
// Nothing is logged to Zapier.
process.env.LOGGING_ENDPOINT = 'http://127.0.0.1:9/';

const zapier = require(core);
const schema = require(`${core}/src/tools/schema`);
const definition = () => {
  delete require.cache[require.resolve(file)];
  return require(file);
};

async function check({ base, key, keyWithoutEvents, type, references, noReferences, guide }) {
  assert.deepStrictEqual(schema.validateApp(schema.prepareApp(definition())), []);
  const broken = definition();
  delete broken.triggers.event.operation.perform;
  assert.notDeepStrictEqual(schema.validateApp(schema.prepareApp(broken)), [], 'the validator finds what is wrong');

  const app = definition();
  for (const [kind, parts] of [['trigger', app.triggers], ['action', app.creates], ['search', app.searches]]) {
    for (const { display } of Object.values(parts)) {
      assert.ok(guide.includes(`| ${kind} ${display.label} | `), `the guide has no ${kind} ${display.label}`);
    }
  }
  let sent;
  app.beforeRequest.push((request) => (sent = request));
  const run = zapier.createAppTester(app);
  const bundle = (inputData = {}, more = {}) => ({ authData: { base: `${base}/`, key }, inputData, ...more });
  const { operation } = app.triggers.event;

  const ping = await run(app.authentication.test, bundle());
  assert.strictEqual(ping.ok, true);
  const label = await run(app.authentication.connectionLabel, bundle(ping));
  assert.strictEqual(label, ping.coach.name);

  const events = await run(operation.perform, bundle({ type }));
  assert.ok(events.length > 1 && events.every((event) => event.id && event.type === type), JSON.stringify(events));
  assert.strictEqual(new URL(sent.url).searchParams.get('limit'), '100', 'Zapier takes 100 new events of a poll');
  const query = `${base}/v1/events?types=${type}&limit=200`;
  const oldestFirst = await (await fetch(query, { headers: { authorization: `Bearer ${key}` } })).json();
  assert.deepStrictEqual(events, oldestFirst.data.reverse(), 'newest first');
  assert.deepStrictEqual(Object.keys(events[0]), Object.keys(operation.sample), 'the sample has the members of events');
  // No event of this type is there, so that a Zap is set up with the example.
  const none = bundle({ type: 'phase_advanced' });
  assert.deepStrictEqual(await run(operation.perform, none), []);
  const [example] = await run(operation.perform, { ...none, meta: { isLoadingSample: true } });
  assert.strictEqual(example.type, 'phase_advanced');
  assert.ok(example.id && example.data.client.id);

  const booked = app.triggers.booking.operation;
  const [booking] = await run(booked.perform, bundle());
  assert.strictEqual(booking.type, 'booking_created');
  assert.deepStrictEqual(Object.keys(booking.data.booking).sort(), Object.keys(booked.sample.data.booking).sort());

  const create = app.creates.client.operation;
  const input = { email: 'zapier@example.com', full_name: 'Zoë Zap', external_id: 'zap-1', phone: '', reference: 'order-1' };
  const made = await run(create.perform, bundle(input));
  assert.strictEqual(made.id, made.client_id);
  assert.deepStrictEqual(await run(create.perform, bundle(input)), made, 'a repeat is the same client');
  const ids = [];
  for (const [reference, hash] of Object.entries(references)) {
    const empty = { full_name: '', goals: null, phone: '  ' };
    ids.push((await run(create.perform, bundle({ email: `zap-${ids.length}@example.com`, reference, ...empty }))).id);
    assert.strictEqual(sent.headers['Idempotency-Key'], hash);
  }
  assert.notStrictEqual(ids[0], ids[1], 'two references, two clients');
  for (const [number, reference] of noReferences.entries()) {
    const unnamed = { email: `unnamed-${number}@example.com`, send_welcome: false, reference };
    const first = await run(create.perform, bundle(unnamed));
    assert.ok(!('Idempotency-Key' in sent.headers), 'the API derives a key');
    assert.strictEqual((await run(create.perform, bundle(unnamed))).id, first.id);
    assert.ok(first.temp_password);
  }
  await assert.rejects(run(create.perform, bundle({ email: 'no address', reference: 'order-2' })), /email/);

  const find = app.searches.client.operation;
  for (const by of [{ external_id: 'zap-1' }, { email: 'ZAPIER@example.com' }]) {
    const [found, ...others] = await run(find.perform, bundle(by));
    assert.deepStrictEqual([found.id, others], [made.id, []]);
    for (const name of Object.keys(find.sample)) assert.ok(name in found, name);
  }
  assert.deepStrictEqual(await run(find.perform, bundle({ external_id: 'nobody' })), []);
  await assert.rejects(run(find.perform, bundle({ external_id: '', email: ' ' })), /external id/);

  const refused = (authKey, part, data, reason) =>
    assert.rejects(run(part, { authData: { base, key: authKey }, inputData: data }), reason);
  for (const [part, data] of [
    [app.authentication.test, {}],
    [operation.perform, { type }],
    [create.perform, { email: 'expired@example.com' }],
    [find.perform, { email: 'expired@example.com' }],
  ]) {
    await refused('svc_live_nonsense', part, data, { name: 'ExpiredAuthError', message: /API key/ });
  }
  await refused(keyWithoutEvents, operation.perform, { type }, /event/);
  return 'valid, and its parts run';
}

// Calls a part of the app, such as `creates.client`. Returns the exchange.
async function call({ part, base, key, input }) {
  const app = definition();
  let exchange;
  app.afterResponse = [
    (response) => {
      const { url, method, headers: sent, body = null } = response.request;
      const { status, content: answer } = response;
      const headers = Object.fromEntries(response.headers);
      exchange = { method, url, sent, body, status, headers, answer };
      return response;
    },
  ];
  const { perform } = part.split('.').reduce((parts, name) => parts[name], app).operation;
  const done = zapier.createAppTester(app)(perform, { authData: { base, key }, inputData: input });
  const error = await done.then(() => null, (reason) => reason);
  assert.ok(exchange, `${part}: ${error}`);
  assert.strictEqual(error !== null, exchange.status >= 400, `${part}: ${exchange.status}, and ${error}`);
  return exchange;
}

async function main() {
  let work = check;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(`answer ${JSON.stringify(await work(JSON.parse(line)))}`);
    work = call;
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
