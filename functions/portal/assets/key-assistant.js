// Keys for assistants: programs that a coach talks to, and that ask the API by the Model Context Protocol.

import { choices } from "./choices.js";
import { codePanel } from "./code-panel.js";
import { copyButton } from "./copy.js";
import { PERMISSIONS } from "./domain.js";
import { code, h } from "./dom.js";
import { json } from "./json.js";
import { link, remark } from "./ui.js";

/** The kind of a key that is for an assistant. */
export const ASSISTANT = "assistant";

const DAYS = "90";
// The name of the service in the settings of an assistant.
const NAME = "partner-api";

/** The permissions and the end that are chosen when the coach chooses a kind of key. */
export const START = {
  system: { permissions: [], until: "never" },
  [ASSISTANT]: { permissions: PERMISSIONS.filter(({ writes }) => !writes).map(({ name }) => name), until: DAYS },
};

/** The field for the kind of a key: decides what is chosen and shown. The service itself knows no kinds of keys. */
export const kindField = onchange =>
  choices({
    name: "kind",
    legend: "What kind of key do you need?",
    kind: "radio",
    chosen: ["system"],
    onchange,
    choices: [
      { value: "system", label: "For another system", hint: "Such as your website or an automation platform." },
      {
        value: ASSISTANT,
        label: "For an assistant",
        hint:
          "A program that you talk to, such as Claude. It may look but change nothing, and the key ends in " +
          `${DAYS} days, unless you choose otherwise below.`,
      },
    ],
  });

/** Says what an assistant sees with a key of a scope, and who else gets it. */
export const whatItSees = ({ shows }) =>
  remark(
    "info",
    `The assistant will see ${shows}, as far as you allow it below. Its tools leave out health notes. ` +
      "What it reads goes to the company that runs the assistant.",
  );

/** The note with a new key: the address, and what each assistant needs, with the key in place. */
export function assistantNote({ key }) {
  const address = code(`${location.origin}/mcp`);
  return {
    use: "Connect your assistant",
    note: [
      h(
        "div",
        { class: "copyable" },
        h("span", { class: "soft" }, "Address"),
        address,
        copyButton("The address", () => address.textContent, address),
      ),
      h(
        "p",
        {},
        "Take the text for your assistant. The key is in it, so show it to nobody. ",
        link("/docs/guides/assistants", "How to connect an assistant"),
      ),
      codePanel("Assistants", clients(address.textContent, key)),
    ],
  };
}

function clients(address, key) {
  const bearer = `Bearer ${key}`;
  const server = { url: address, headers: { Authorization: bearer } };
  // A blank within an argument is lost on Windows, so the header comes from a variable.
  const args = ["-y", "mcp-remote", address, "--header", "Authorization:${AUTH_HEADER}"];
  const bridge = { command: "npx", args, env: { AUTH_HEADER: bearer } };
  return [
    client(
      "Claude Code",
      "Run this in a terminal.",
      `claude mcp add --transport http ${NAME} ${address} --header "Authorization: ${bearer}"`,
    ),
    client(
      "Claude",
      "In Claude, open Settings, Developer, Edit Config, and put this into the file. Your computer needs Node.js.",
      settings("mcpServers", bridge),
    ),
    client("Cursor", "Put this into the file ~/.cursor/mcp.json.", settings("mcpServers", server)),
    client("VS Code", "Put this into the file .vscode/mcp.json.", settings("servers", { type: "http", ...server })),
    client(
      "n8n",
      "Fill in a node “MCP Client Tool” like this. The key goes into its credential.",
      [
        `Endpoint: ${address}`,
        "Server Transport: HTTP Streamable",
        "Authentication: Bearer Auth",
        `Bearer Token: ${key}`,
      ].join("\n"),
    ),
  ];
}

const settings = (member, server) => JSON.stringify({ [member]: { [NAME]: server } }, null, 2);

// The text is in the page alone, which the dialog clears.
const client = (title, place, text) => ({
  title,
  name: `The text for ${title}`,
  place,
  content: h("code", {}, json(text)),
});
