// `@modelcontextprotocol/sdk`, the first generation of the TypeScript client, which many hosts have: it knows the
// handshake alone. Takes the path of the folder with the packages; stdin is as checks.mjs says.

import assert from 'node:assert/strict';

import { info, main, packages } from './checks.mjs';

const { Client } = packages('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = packages('@modelcontextprotocol/sdk/client/streamableHttp.js');
const NEWEST = '2025-11-25';

async function connect(url, http, onerror) {
  const client = new Client(info);
  client.onerror = onerror;
  const transport = new StreamableHTTPClientTransport(url, http);
  await client.connect(transport);
  assert.equal(client.getServerVersion().name, 'partner-api');
  assert.ok(client.getInstructions(), 'instructions');
  assert.equal(transport.protocolVersion, NEWEST);
  return { client, transport, version: NEWEST, isLegacy: true };
}

await main([['typescript client 1', connect]]);
