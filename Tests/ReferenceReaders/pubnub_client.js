#!/usr/bin/env node
// Drives a message server with the stock PubNub SDK for JavaScript, unchanged.
//
//     pubnub_client.js BUNDLE ORIGIN NAME=VALUE ...
//
// BUNDLE is the SDK's build for the web, pubnub.js. Names: pub, sub, and closed, the subscribe key of an application that
// grants nothing. Prints one line for each check: "ok WHAT" or "not ok WHAT: WHY".
'use strict';
// What the build for the web expects around it.
globalThis.window = globalThis;
globalThis.addEventListener ??= () => {};
globalThis.document ??= { querySelector: () => ({}) };
const PubNub = require(require('path').resolve(process.argv[2]));
const origin = process.argv[3];
const given = Object.fromEntries(process.argv.slice(4).map((pair) => pair.split(/=(.*)/s)));
let failures = 0;

function check(what, condition, why) {
  failures += condition ? 0 : 1;
  console.log(condition ? `ok ${what}` : `not ok ${what}: ${why}`);
}

function equal(what, found, wanted) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  check(what, a === b, `${a} instead of ${b}`);
}

function client(userId, changes = {}) {
  return new PubNub({
    publishKey: given.pub, subscribeKey: given.sub, userId, origin, ssl: false, restore: false, ...changes,
  });
}

async function until(what, condition) {
  const end = Date.now() + 20_000;
  while (!condition() && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 10));
  check(what, condition(), 'it did not come in time');
}

async function refused(what, call, status) {
  try {
    await call();
    check(what, false, 'it was allowed');
  } catch (error) {
    check(what, error.status?.statusCode === status, `${error.status?.statusCode} ${error}`);
  }
}

async function scenarios() {
  const [reader, writer] = [client('reader'), client('writer')];
  check('time', String((await writer.time()).timetoken).length === 17, 'no timetoken');

  const [messages, presences, signals, statuses] = [[], [], [], []];
  reader.addListener({
    message: (event) => messages.push(event), presence: (event) => presences.push(event),
    signal: (event) => signals.push(event), status: (event) => statuses.push(event),
  });
  reader.subscribe({ channels: ['js', 'w.*'], withPresence: true });
  await until('connected', () => statuses.some((s) => s.category === 'PNConnectedCategory'));
  const wanted = ['text', 1.5, true, { a: [1, { b: "c/d?e&f%!'()*~" }] }, 'żółć 🎈', { long: 'x'.repeat(20_000) }];
  const places = [];
  for (const message of wanted) {
    const sent = await writer.publish({ channel: 'js', message, sendByPost: JSON.stringify(message).length > 1_000 });
    places.push(sent.timetoken);
  }
  await writer.signal({ channel: 'js', message: 'typing' });
  await writer.publish({ channel: 'w.a', message: 'by pattern', meta: { color: 'red' }, customMessageType: 'text-note' });
  await until('all arrive', () => messages.length > wanted.length && signals.length > 0);
  equal('in their order, each once', messages.map((m) => m.message), [...wanted, 'by pattern']);
  equal('with the places of the replies', messages.slice(0, -1).map((m) => m.timetoken), places);
  const last = messages[messages.length - 1];
  equal('by pattern', [last.channel, last.subscription, last.userMetadata, last.customMessageType],
    ['w.a', 'w.*', { color: 'red' }, 'text-note']);
  equal('signal', signals.map((s) => [s.channel, s.message, s.publisher]), [['js', 'typing', 'writer']]);

  await until('own join', () => presences.some((p) => p.action === 'join' && p.uuid === 'reader'));
  const here = await writer.hereNow({ channels: ['js'], includeUUIDs: true });
  equal('here-now', here.channels.js.occupants.map((o) => o.uuid), ['reader']);
  equal('where-now', (await writer.whereNow({ uuid: 'reader' })).channels.includes('js'), true);
  await reader.setState({ channels: ['js'], state: { mood: 'fine' } });
  equal('state', (await writer.getState({ channels: ['js'], uuid: 'reader' })).channels.js, { mood: 'fine' });
  await until('state change', () => presences.some((p) => p.action === 'state-change' && p.state.mood === 'fine'));

  const fetched = await writer.fetchMessages({ channels: ['js'], count: 100 });
  equal('fetch', fetched.channels.js.map((m) => m.message), wanted);
  equal('fetched places', fetched.channels.js.map((m) => m.timetoken), places);
  const counts = await writer.messageCounts({ channels: ['js'], channelTimetokens: [places[2]] });
  equal('counts', counts.channels.js, wanted.length - 3);
  await writer.channelGroups.addChannels({ channelGroup: 'jsg', channels: ['g1', 'g2'] });
  equal('group', (await writer.channelGroups.listChannels({ channelGroup: 'jsg' })).channels.sort(), ['g1', 'g2']);

  await refused('message too large', () => writer.publish(
    { channel: 'js', message: 'x'.repeat(33_000), sendByPost: true }), 413);
  await refused('wrong key', () => client('w', { publishKey: 'pub-c-wrong' }).publish({ channel: 'js', message: 1 }), 400);
  await refused('objects are not offered', () => writer.objects.getAllChannelMetadata(), 403);
  const stranger = client('stranger', { subscribeKey: given.closed });
  await refused('no grant: history', () => stranger.fetchMessages({ channels: ['a'] }), 403);
  const ended = [];
  stranger.addListener({ status: (event) => ended.push(event.category) });
  stranger.subscribe({ channels: ['a'] });
  await until('no grant: subscribe', () => ended.includes('PNConnectionErrorCategory'));
  reader.unsubscribeAll();
}

scenarios().catch((error) => check('scenarios', false, error.stack)).finally(() => process.exit(failures ? 1 : 0));
