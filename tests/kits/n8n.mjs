// Carries the n8n workflow out from a start node, as far as its nodes need: settings, code, HTTP
// requests. Reads {workflow, start, input, staticData, base, key} from stdin. Writes {reached,
// staticData} to stdout: the items that each node gives, and what n8n keeps after a successful
// execution.

import { readFileSync } from 'node:fs';

const run = JSON.parse(readFileSync(0, 'utf8'));
const { nodes, connections } = run.workflow;

// An n8n expression: `=` and a template with {{ code }}.
function evaluate(text, json) {
  if (typeof text !== 'string' || !text.startsWith('=')) return text;
  const code = (source) => new Function('$json', `return (${source});`)(json);
  const whole = /^=\{\{([^]*)\}\}$/.exec(text);
  if (whole && !whole[1].includes('}}')) return code(whole[1]);
  return text.slice(1).replace(/\{\{([^]*?)\}\}/g, (_, source) => code(source));
}

async function request({ parameters }, json) {
  const url = new URL(evaluate(parameters.url, json));
  if (parameters.sendQuery) {
    const query = JSON.parse(evaluate(parameters.jsonQuery, json));
    Object.entries(query).forEach(([name, value]) => url.searchParams.set(name, value));
  }
  // The credential of the type Header Auth.
  const headers = { authorization: `Bearer ${run.key}`, 'content-type': 'application/json' };
  const own = parameters.sendHeaders ? parameters.headerParameters.parameters : [];
  own.forEach(({ name, value }) => (headers[name] = evaluate(value, json)));
  const body = parameters.sendBody ? evaluate(parameters.jsonBody, json) : undefined;
  const answer = await fetch(url, { method: parameters.method, headers, body });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status} ${text}`);
  return JSON.parse(text);
}

const kinds = {
  'n8n-nodes-base.scheduleTrigger': () => [{ json: {} }],
  'n8n-nodes-base.executeWorkflowTrigger': () => [{ json: run.input }],
  'n8n-nodes-base.noOp': (_, items) => items,
  'n8n-nodes-base.set': ({ parameters }, items) =>
    items.map(({ json }) => {
      const set = parameters.assignments.assignments.map(({ name }) => [name, name === 'base' ? run.base : '']);
      return { json: { ...(parameters.includeOtherFields ? json : {}), ...Object.fromEntries(set) } };
    }),
  'n8n-nodes-base.code': ({ parameters }, items) => {
    const code = new Function('$input', '$getWorkflowStaticData', parameters.jsCode);
    return code({ first: () => items[0], all: () => items }, () => run.staticData);
  },
  'n8n-nodes-base.httpRequest': (node, items) =>
    Promise.all(items.map(async ({ json }) => ({ json: await request(node, json) }))),
};

const reached = {};
async function carryOut(name, given) {
  const node = nodes.find((known) => known.name === name);
  const items = await kinds[node.type](node, given);
  reached[name] = items.map(({ json }) => json);
  // n8n runs no node without items.
  if (items.length === 0) return;
  for (const next of connections[name]?.main[0] ?? []) await carryOut(next.node, items);
}
await carryOut(run.start, []);
console.log(JSON.stringify({ reached, staticData: run.staticData }));
