#!/usr/bin/env python3
"""Publishes and receives encrypted messages with PubNub's SDK for Python, without a network.

    pubnub_messages.py FORM    reads and writes lines of JSON

FORM is that of MessageCipher. A line has the cipher key and one of these:

    publish: a value         the answer is the JSON text that the SDK would send
    receive: a message       the answer is the value that a subscriber's listener gets
    history: a message       the same, for version 2 of the history, which knows only the legacy forms
    sendFile, receiveFile    base64 of bytes, in both directions

The answer is {"result": ...} or {"error": "text"}. With "plain" in the line, the SDK has a cipher key and no crypto
module, as in its older versions.
"""
import base64, json, logging, sys

from pubnub.crypto import AesCbcCryptoModule, LegacyCryptoModule
from pubnub.models.consumer.history import PNHistoryResult
from pubnub.pnconfiguration import PNConfiguration
from pubnub.pubnub import PubNub
from pubnub.workers import SubscribeMessageWorker

logging.disable(logging.CRITICAL)


class Worker(SubscribeMessageWorker):
    """The subscriber's part that decrypts, without its thread."""
    def __init__(self, client):
        self._pubnub = client


def client(form, key, plain):
    configuration = PNConfiguration()
    configuration.publish_key = configuration.subscribe_key = "demo"
    configuration.user_id = "tester"
    configuration.cipher_key = key
    configuration.use_random_initialization_vector = form != "legacyStaticIV"
    if not plain:
        module = AesCbcCryptoModule if form == "aesCBC" else LegacyCryptoModule
        configuration.crypto_module = module(configuration)
    return PubNub(configuration)


def answer(form, line):
    pubnub = client(form, line["cipherKey"], line.get("plain"))
    if "publish" in line:
        return pubnub.publish().channel("c").message(line["publish"]).use_post(True).build_data()
    if "receive" in line:
        value, error = Worker(pubnub)._process_message(line["receive"])
        if error:
            raise error
        return value
    if "history" in line:
        item = PNHistoryResult.from_json(
            [[line["history"]], 1, 2], pubnub.config.crypto, cipher=line["cipherKey"]).messages[0]
        if item.error:
            raise item.error
        return item.entry
    if "sendFile" in line:
        return base64.b64encode(pubnub.crypto.encrypt_file(base64.b64decode(line["sendFile"]))).decode()
    return base64.b64encode(pubnub.crypto.decrypt_file(base64.b64decode(line["receiveFile"]))).decode()


for line in sys.stdin:
    try:
        print(json.dumps({"result": answer(sys.argv[1], json.loads(line))}))
    except Exception as error:
        print(json.dumps({"error": str(error)}))
