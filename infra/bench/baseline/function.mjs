// The work of `GET /v1/ping` in Node with the AWS SDK: one conditional update, one read, a JSON response.
import { createHash } from "node:crypto";
import http from "node:http";
import { DynamoDBClient, GetItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";

const client = new DynamoDBClient({});
const { KEYS_TABLE, WORKSPACES_TABLE, AWS_LAMBDA_RUNTIME_API } = process.env;
const [host, port] = AWS_LAMBDA_RUNTIME_API.split(":");
const agent = new http.Agent({ keepAlive: true });

async function handle(event) {
  const bearer = event.headers.authorization.slice("Bearer ".length);
  const hash = createHash("sha256").update(bearer).digest();
  const minute = Math.floor(Date.now() / 60000);
  const counted = await client.send(
    new UpdateItemCommand({
      TableName: KEYS_TABLE,
      Key: { pk: { S: `BENCH#${hash.toString("hex").slice(0, 32)}` }, sk: { S: "KEY" } },
      UpdateExpression: "ADD #w :one REMOVE #past",
      ConditionExpression: "attribute_exists(pk) AND (attribute_not_exists(#w) OR #w < :most)",
      ExpressionAttributeNames: { "#w": `w${minute}`, "#past": `w${minute - 2}` },
      ExpressionAttributeValues: { ":one": { N: "1" }, ":most": { N: "1000000" } },
      ReturnValues: "ALL_NEW",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      ReturnConsumedCapacity: "TOTAL",
    }),
  );
  const coach = counted.Attributes.coach_id.S;
  const found = await client.send(
    new GetItemCommand({
      TableName: WORKSPACES_TABLE,
      Key: { pk: { S: `COACH#${coach}` }, sk: { S: "WORKSPACE" } },
      ConsistentRead: true,
      ReturnConsumedCapacity: "TOTAL",
    }),
  );
  const body = { ok: true, coach: { id: coach, email: found.Item.email.S, name: found.Item.name.S }, scope: "partner" };
  const line = { level: "INFO", request_id: event.requestContext.requestId, coach_id: coach, status: 200 };
  process.stdout.write(`${JSON.stringify(line)}\n`);
  return { statusCode: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

function call(method, path, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host, port, method, path: `/2018-06-01/runtime/${path}`, agent }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => (text += part));
      response.on("end", () => resolve({ headers: response.headers, text }));
    });
    request.on("error", reject).end(body);
  });
}

for (;;) {
  const { headers, text } = await call("GET", "invocation/next");
  const id = headers["lambda-runtime-aws-request-id"];
  const answer = await handle(JSON.parse(text));
  await call("POST", `invocation/${id}/response`, JSON.stringify(answer));
}
