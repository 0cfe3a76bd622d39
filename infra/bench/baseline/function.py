"""The work of `GET /v1/ping` in Python with boto3: one conditional update, one read, a JSON response."""

import hashlib
import http.client
import json
import os
import sys
import time

import boto3

client = boto3.client("dynamodb")
KEYS, WORKSPACES = os.environ["KEYS_TABLE"], os.environ["WORKSPACES_TABLE"]
runtime = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])


def handle(event):
    bearer = event["headers"]["authorization"][len("Bearer ") :]
    digest = hashlib.sha256(bearer.encode()).hexdigest()
    minute = int(time.time() // 60)
    counted = client.update_item(
        TableName=KEYS,
        Key={"pk": {"S": f"BENCH#{digest[:32]}"}, "sk": {"S": "KEY"}},
        UpdateExpression="ADD #w :one REMOVE #past",
        ConditionExpression="attribute_exists(pk) AND (attribute_not_exists(#w) OR #w < :most)",
        ExpressionAttributeNames={"#w": f"w{minute}", "#past": f"w{minute - 2}"},
        ExpressionAttributeValues={":one": {"N": "1"}, ":most": {"N": "1000000"}},
        ReturnValues="ALL_NEW",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
        ReturnConsumedCapacity="TOTAL",
    )
    coach = counted["Attributes"]["coach_id"]["S"]
    found = client.get_item(
        TableName=WORKSPACES,
        Key={"pk": {"S": f"COACH#{coach}"}, "sk": {"S": "WORKSPACE"}},
        ConsistentRead=True,
        ReturnConsumedCapacity="TOTAL",
    )["Item"]
    body = {"ok": True, "coach": {"id": coach, "email": found["email"]["S"], "name": found["name"]["S"]}, "scope": "partner"}
    line = {"level": "INFO", "request_id": event["requestContext"]["requestId"], "coach_id": coach, "status": 200}
    print(json.dumps(line), flush=True)
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(body)}


def call(method, path, body=None):
    runtime.request(method, f"/2018-06-01/runtime/{path}", body)
    response = runtime.getresponse()
    return response.headers, response.read()


while True:
    headers, event = call("GET", "invocation/next")
    answer = handle(json.loads(event))
    call("POST", f"invocation/{headers['lambda-runtime-aws-request-id']}/response", json.dumps(answer))
