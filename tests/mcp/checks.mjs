// The checks that both generations of the TypeScript client pass: the list, every tool that reads with its output
// validated, errors, and the end. stdin is {url, keys: [{key, reads: [[tool, arguments]], missing}]}, `missing` being
// arguments of the first tool with an argument that name nothing.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';

// The packages are below the folder that the script is given, not beside the script.
export const packages = createRequire(`${process.argv[2]}/package.json`);
export const info = { name: 'partner-api-checks', version: '1.0.0' };

const INVALID_PARAMS = -32602;

// A fetch that notes its requests, and that spoils the structured content of answers on demand.
function recording() {
  const requests = [];
  const recorded = async (url, init = {}) => {
    const answer = await fetch(url, init);
    requests.push(`${init.method ?? 'GET'} ${new URL(url).pathname} ${answer.status}`);
    if (!recorded.spoils) return answer;
    const body = await answer.json();
    body.result.structuredContent = { nobody: true };
    return Response.json(body);
  };
  return Object.assign(recorded, { requests, spoils: false });
}

async function checkTools(client, fetch, { reads, missing }) {
  const { tools } = await client.listTools();
  const reading = tools.filter((tool) => tool.annotations.readOnlyHint).map((tool) => tool.name);
  assert.deepEqual(new Set(reads.map(([name]) => name)), new Set(reading), 'every tool that reads is called');
  for (const [name, given] of reads) {
    const result = await client.callTool({ name, arguments: given });
    assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`);
    const [{ text: json }] = result.content;
    assert.deepEqual(result.structuredContent, JSON.parse(json), `${name}: text and structure differ`);
  }
  const [name, given] = missing;
  const failed = await client.callTool({ name, arguments: given });
  assert.ok(failed.isError && failed.structuredContent === undefined, `${name}: ${JSON.stringify(failed)}`);
  assert.match(failed.content[0].text, /\[not_found\]/);
  await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }), { code: INVALID_PARAMS });
  fetch.spoils = true;
  const spoiled = client.callTool({ name: reads[0][0], arguments: reads[0][1] });
  await assert.rejects(spoiled, /output schema/, 'the client validates structured content');
  fetch.spoils = false;
  return tools.length;
}

// GET and DELETE, which the older revisions have for streams and sessions.
async function checkMethods(url, key) {
  for (const method of ['GET', 'DELETE']) {
    const headers = { authorization: `Bearer ${key}`, accept: 'text/event-stream' };
    const answer = await fetch(url, { method, headers });
    assert.deepEqual([method, answer.status, answer.headers.get('allow')], [method, 405, 'POST']);
    await answer.text();
  }
}

// Checks one way to connect. `connect` takes the address, the transport's options {fetch, requestInit} and a function
// for errors outside of calls. It returns {client, transport, version, isLegacy}.
export async function check(name, connect, { url, keys }) {
  const counts = [];
  let revision;
  for (const each of keys) {
    const errors = [];
    const recorded = recording();
    const requestInit = { headers: { authorization: `Bearer ${each.key}` } };
    const http = { fetch: recorded, requestInit };
    const connected = await connect(new URL(url), http, (error) => errors.push(error));
    const { client, transport, version, isLegacy } = connected;
    counts.push(await checkTools(client, recorded, each));
    if (isLegacy) {
      await client.ping();
      await transport.terminateSession();
    }
    await client.close();
    assert.deepEqual(errors, [], `${name}: errors outside of calls`);
    const path = new URL(url).pathname;
    const stream = recorded.requests.filter((request) => !request.startsWith(`POST ${path} `));
    assert.deepEqual(stream, isLegacy ? [`GET ${path} 405`] : [], `${name}: no request but to the server`);
    await checkMethods(url, each.key);
    revision = version;
  }
  console.log(`${name}: revision ${revision}, ${counts.join(' and ')} tools listed, reads valid`);
}

export async function main(checks) {
  const asked = JSON.parse(await text(process.stdin));
  for (const [name, connect] of checks) await check(name, connect, asked);
}
