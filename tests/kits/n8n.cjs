// The n8n workflow on n8n's own engine, n8n-core: it orders the nodes, resolves expressions, ends an execution at the
// first failure and says what static data is stored. The nodes have n8n's descriptions and do here what the workflow
// needs of them. Takes the paths of n8n-core and of the descriptions. A line of stdin is an execution {workflow, start,
// input, staticData, base, key, failing}, `failing` being the name of a node that fails. For each, a line of stdout is
// `answer` with {reached, requests, error, staticData}: the items that each node gives, the requests as `Exchange` of
// request_log.py has them, and what n8n keeps after the execution.

'use strict';

const fs = require('node:fs');
const { createRequire } = require('node:module');
const readline = require('node:readline');

const [core, descriptions] = process.argv.slice(2);
const { ExecutionLifecycleHooks, WorkflowExecute } = require(core);
const { Workflow } = createRequire(`${core}/package.json`)('n8n-workflow');
// The current execution, and its requests.
let run;
let requests;

async function request(node, index) {
  const parameter = (name) => node.getNodeParameter(name, index);
  const url = new URL(parameter('url'));
  if (parameter('sendQuery')) {
    Object.entries(JSON.parse(parameter('jsonQuery'))).forEach(([name, value]) => url.searchParams.set(name, value));
  }
  // The credential of the type Header Auth.
  const sent = { authorization: `Bearer ${run.key}`, 'content-type': 'application/json' };
  if (parameter('sendHeaders')) Object.assign(sent, JSON.parse(parameter('jsonHeaders')));
  const method = parameter('method');
  const body = method === 'POST' ? parameter('jsonBody') : null;
  const response = await fetch(url, { method, headers: sent, body });
  const { status } = response;
  const answer = await response.text();
  requests.push({ method, url, sent, body, status, headers: Object.fromEntries(response.headers), answer });
  if (!response.ok) throw new Error(`${status} ${answer}`);
  return JSON.parse(answer);
}

// Each gives the items of its node. `this` is the engine's context of the execution.
const kinds = {
  'n8n-nodes-base.executeWorkflowTrigger': () => [{ json: run.input }],
  'n8n-nodes-base.noOp': (node) => node.getInputData(),
  'n8n-nodes-base.set': (node) =>
    node.getInputData().map(({ json }, index) => {
      const set = node.getNodeParameter('assignments', index).assignments.map(({ name, value }) => [name, value]);
      const others = node.getNodeParameter('includeOtherFields', index) ? json : {};
      return { json: { ...others, ...Object.fromEntries(set), base: run.base } };
    }),
  'n8n-nodes-base.code': (node) => {
    const code = new Function('$input', '$getWorkflowStaticData', node.getNodeParameter('jsCode', 0));
    const items = node.getInputData();
    return code({ first: () => items[0], all: () => items }, (type) => node.getWorkflowStaticData(type));
  },
  'n8n-nodes-base.httpRequest': (node) =>
    Promise.all(node.getInputData().map(async (_, index) => ({ json: await request(node, index) }))),
};

const all = JSON.parse(fs.readFileSync(descriptions, 'utf8'));
function nodeType(type, version) {
  const description = all.find(
    (known) => `n8n-nodes-base.${known.name}` === type && [known.version].flat().includes(version),
  );
  if (description.group.includes('trigger') && !kinds[type]) return { description, trigger() {} };
  return {
    description,
    async execute() {
      if (this.getNode().name === run.failing) throw new Error('this node fails');
      return [await kinds[type](this)];
    },
  };
}

async function execute() {
  requests = [];
  const nodeTypes = { getByNameAndVersion: nodeType };
  const workflow = new Workflow({ ...run.workflow, id: 'kit', active: true, nodeTypes, staticData: run.staticData });
  let { staticData } = run;
  const hooks = new ExecutionLifecycleHooks('trigger', '1', run.workflow);
  // As n8n does in execution-lifecycle-hooks.js, after failed executions too.
  hooks.addHandler('workflowExecuteAfter', (_, changed) => {
    if (changed) staticData = changed;
  });
  // No request comes back to a waiting execution.
  const urls = { webhookWaitingBaseUrl: 'http://127.0.0.1/', formWaitingBaseUrl: 'http://127.0.0.1/' };
  const additionalData = { hooks, executionId: '1', currentNodeExecutionIndex: 0, variables: {}, ...urls };
  const execution = new WorkflowExecute(additionalData, 'trigger');
  const { data } = await execution.run({ workflow, startNode: workflow.getNode(run.start) });
  const items = ([{ data: given }]) => (given?.main[0] ?? []).map(({ json }) => json);
  const reached = Object.entries(data.resultData.runData).map(([name, runs]) => [name, items(runs)]);
  return { reached: Object.fromEntries(reached), requests, error: data.resultData.error?.message, staticData };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    run = JSON.parse(line);
    console.log(`answer ${JSON.stringify(await execute())}`);
  }
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
