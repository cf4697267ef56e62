// Drives a message server with pusher-js, unchanged.
//
//     node pusher_client.js BUNDLE HOST PORT KEY SECRET
//
// Prints one line for each check: "ok WHAT" or "not ok WHAT: WHY".
"use strict";
const crypto = require("crypto");
const [bundle, host, port, key, secret] = process.argv.slice(2);
const Pusher = require(bundle);
let failures = 0;

function check(what, condition, why = "") {
  if (!condition) failures += 1;
  console.log(condition ? `ok ${what}` : `not ok ${what}: ${why}`);
}

function equal(what, found, wanted) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  check(what, a === b, `${a} instead of ${b}`);
}

function client(userID, options = {}) {
  const pusher = new Pusher(options.key ?? key, {
    cluster: "none", wsHost: host, wsPort: Number(port), forceTLS: false, enabledTransports: ["ws"],
    wsPath: options.path ?? "",
    channelAuthorization: {
      customHandler: ({ socketId, channelName }, callback) => {
        const data = channelName.startsWith("presence-")
          ? JSON.stringify({ user_id: userID, user_info: { name: "é" } }) : undefined;
        const text = `${socketId}:${channelName}` + (data ? `:${data}` : "");
        const code = crypto.createHmac("sha256", options.secret ?? secret).update(text).digest("hex");
        callback(null, { auth: `${key}:${code}`, channel_data: data });
      },
    },
  });
  return pusher;
}

function event(target, name, seconds = 20) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${name} did not come`)), seconds * 1000);
    target.bind(name, (data, metadata) => { clearTimeout(timer); resolve({ data, metadata }); });
  });
}

async function subscribe(pusher, name) {
  const channel = pusher.subscribe(name);
  await event(channel, "pusher:subscription_succeeded");
  return channel;
}

async function run() {
  const [one, two] = [client("u1"), client("u2", { path: "/base" })];
  await Promise.all([event(one.connection, "connected"), event(two.connection, "connected")]);
  check("connect, also below another path", true);
  const first = await subscribe(one, "presence-a");
  equal("the roster has one", [first.members.count, first.members.me.id], [1, "u1"]);
  const added = event(first, "pusher:member_added");
  const second = await subscribe(two, "presence-a");
  equal("a member is added", (await added).data, { id: "u2", info: { name: "é" } });
  equal("the roster has both", second.members.count, 2);
  const heard = event(first, "client-x");
  let echo = 0;
  second.bind("client-x", () => { echo += 1; });
  second.trigger("client-x", { n: 1 });
  const { data, metadata } = await heard;
  equal("a client event", [data, metadata.user_id], [{ n: 1 }, "u2"]);
  equal("does not come back", echo, 0);
  const removed = event(first, "pusher:member_removed");
  two.disconnect();
  equal("a member is removed", (await removed).data.id, "u2");
  await subscribe(one, "public");
  await subscribe(one, "private-a");
  const miss = one.subscribe("cache-a");
  await event(miss, "pusher:cache_miss");
  check("a cache miss", true);
  const stranger = client("u3", { secret: "wrong" });
  const refusal = await event(stranger.subscribe("private-a"), "pusher:subscription_error");
  equal("a refusal", [refusal.data.type, refusal.data.status], ["AuthError", 401]);
  equal("keeps the connection", stranger.connection.state, "connected");
  const unknown = client("u4", { key: "none" });
  const failed = await event(unknown.connection, "error");
  equal("an unknown key", failed.data.data?.code ?? failed.data.error?.data?.code, 4001);
  await new Promise((resolve) => setTimeout(resolve, 3000));
  check("is not tried again", ["disconnected", "failed"].includes(unknown.connection.state),
    unknown.connection.state);
}

run().catch((error) => check("the scenario", false, error.stack.replaceAll("\n", " | ")))
  .finally(() => process.exit(failures ? 1 : 0));
