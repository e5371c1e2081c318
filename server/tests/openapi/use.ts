// Uses the types that were generated from the document, with a client that is built on them: the life of a task, a
// refusal, a list, who is asking.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };
const [url, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${token}` } });

function is(found: unknown, expected: unknown): void {
  const [left, right] = [JSON.stringify(found), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${left} instead of ${right}`);
}

const me = await client.GET("/v1/me");
const roles: components["schemas"]["Role"][] | undefined = me.data?.roles;
is(roles, ["admin"]);

const put = await client.PUT("/v1/queues/{queue}", { params: { path: { queue: "orders" } }, body: { lease: "10s" } });
is(put.data?.settings.lease, "10s");

const task: components["schemas"]["NewTask"] = { topic: "orders", id: "7", delay: "1ms", body: { order: 7 } };
const scheduled = await client.POST("/v1/tasks", { body: task });
is([scheduled.response.status, scheduled.data?.outcome], [201, "created"]);

const reserved = await client.POST("/v1/reserve", { body: { queues: ["orders"], wait: "20s" } });
const delivery = reserved.data!.deliveries[0];
is([delivery.id, delivery.body, delivery.attempt], ["7", { order: 7 }, 1]);

const path = { topic: "orders", id: "7" };
const late = await client.DELETE("/v1/tasks/{topic}/{id}", { params: { path } });
is([late.response.status, late.error?.code], [409, "too-late"]);

const settled = await client.POST("/v1/leases", { body: { actions: [{ do: "acknowledge", lease: delivery.lease }] } });
const result = settled.data!.results[0];
is("outcome" in result && result.outcome, "acknowledged");

for (const text of ["a", "b", "c"]) await client.POST("/v1/tasks", { body: { topic: "mails", delay: "1h", text } });
const first = await client.GET("/v1/tasks", { params: { query: { topic: "mails", limit: 2, bodies: true } } });
is([first.data?.tasks.length, first.data?.tasks[0].text], [2, "a"]);
const rest = await client.GET("/v1/tasks", { params: { query: { topic: "mails", cursor: first.data!.next! } } });
is([rest.data?.tasks.length, rest.data?.next], [1, undefined]);

// @ts-expect-error: a filter that this list refuses is not among its parameters.
is((await client.GET("/v1/tasks", { params: { query: { queue: "orders" } } })).response.status, 422);
console.log("fine");
