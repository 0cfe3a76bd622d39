// `@modelcontextprotocol/client`, the present TypeScript client: with its default handshake, with negotiation, and
// pinned to a revision. Takes the path of the folder with the packages; stdin is as checks.mjs says.

import assert from 'node:assert/strict';

import { info, main, packages } from './checks.mjs';

const { Client, StreamableHTTPClientTransport } = packages('@modelcontextprotocol/client');
const MODERN = '2026-07-28';
const NEWEST_LEGACY = '2025-11-25';

function connecting(options, era, version) {
  return async (url, http, onerror) => {
    const client = new Client(info, options);
    client.onerror = onerror;
    const transport = new StreamableHTTPClientTransport(url, http);
    await client.connect(transport);
    assert.deepEqual([client.getProtocolEra(), client.getNegotiatedProtocolVersion()], [era, version]);
    assert.equal(client.getServerVersion().name, 'partner-api');
    assert.ok(client.getInstructions(), 'instructions');
    return { client, transport, version, isLegacy: era === 'legacy' };
  };
}

await main([
  ['typescript client 2, default', connecting({}, 'legacy', NEWEST_LEGACY)],
  ['typescript client 2, auto', connecting({ versionNegotiation: { mode: 'auto' } }, 'modern', MODERN)],
  ['typescript client 2, pinned', connecting({ versionNegotiation: { mode: { pin: MODERN } } }, 'modern', MODERN)],
]);
