#!/usr/bin/env python3
"""Plays the service manager, the operator and the clients of a message server, and prints what it saw as JSON.

    server_operations.py DATAVAULT DATAVAULTD HOME PASSWORD_FILE

The server gets its sockets as from systemd. It starts sealed, is unlocked, locked and unlocked again, and is stopped
while 16 clients publish and one waits for events.
"""
import http.client, json, os, re, signal, socket, subprocess, sys, threading, time

datavault, datavaultd, home, password = sys.argv[1:5]
sealing = ["--home", home]
opening = sealing + ["--password-file", password]
keys = json.loads(subprocess.run(
    [datavaultd, "app", "add", "shop", "--open", "--json"] + opening, check=True,
    stdout=subprocess.PIPE).stdout)
pub, sub = keys["publishKey"], keys["subscribeKey"]

notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind(home + "-notify")
notify.settimeout(20)
reports = []


def read_reports():
    while True:
        try:
            reports.append(notify.recv(4096).decode())
        except OSError:
            return


threading.Thread(target=read_reports, daemon=True).start()


def listener():
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen(128)
    return made


web, operations, stomp = listener(), listener(), listener()


def start():
    pid = os.fork()
    if pid:
        return pid
    high = [os.dup(made.fileno()) for made in (web, operations, stomp)]
    high = [os.dup2(descriptor, 100 + index) for index, descriptor in enumerate(high)]
    for index, descriptor in enumerate(high):
        os.dup2(descriptor, 3 + index, inheritable=True)
    error = os.open(home + "-log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(error, 2)
    os.dup2(error, 1)
    os.closerange(6, 200)
    os.execve(
        datavaultd, [datavaultd, "serve", "--home", home, "--access-log", home + "-access",
                     "--listen", "127.0.0.1:1", "--stomp-listen", "127.0.0.1:1", "--log-level", "debug"],
        dict(os.environ, LISTEN_PID=str(os.getpid()), LISTEN_FDS="3",
             LISTEN_FDNAMES="web:operations:stomp", NOTIFY_SOCKET=home + "-notify",
             WATCHDOG_USEC="1000000", WATCHDOG_PID=str(os.getpid())))


def get(listening, target, timeout=10):
    connection = http.client.HTTPConnection(*listening.getsockname(), timeout=timeout)
    connection.request("GET", target)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def wait_for(check):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if check():
            return True
        time.sleep(0.02)
    return False


def ready():
    return get(web, "/health/ready")[0] == 200


def end(pid):
    begin = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    status = os.waitpid(pid, 0)[1]
    return os.waitstatus_to_exitcode(status), time.monotonic() - begin


seen = {}
server = start()
wait_for(lambda: any(report.startswith("READY=1") for report in reports))
seen["sealed"] = [get(web, "/health/live")[0], get(operations, "/health/ready")]
subprocess.run([datavault, "unlock", "messaging"] + opening, check=True, stdout=subprocess.DEVNULL)
seen["unlocked"] = wait_for(ready)
seen["metricsForClients"] = get(web, "/metrics")[0]
os.rename(home + "-access", home + "-access.1")
os.kill(server, signal.SIGHUP)
seen["reloaded"] = wait_for(lambda: any(report.startswith("RELOADING=1") for report in reports))
subprocess.run([datavault, "lock", "messaging"] + sealing, check=True, stdout=subprocess.DEVNULL)
seen["locked"] = wait_for(lambda: not ready())
subprocess.run([datavault, "unlock", "messaging"] + opening, check=True, stdout=subprocess.DEVNULL)
wait_for(ready)

acknowledged, broken, poll = set(), [], []


def publish(number):
    connection = http.client.HTTPConnection(*web.getsockname(), timeout=20)
    count = 0
    while True:
        count += 1
        name = f"secret-payload-{number}-{count}"
        try:
            connection.request(
                "GET", f"/publish/{pub}/{sub}/0/orders/0/%22{name}%22?auth=secret-auth&uuid=alice")
        except OSError:
            return  # closed between two requests
        try:
            answer = connection.getresponse()
            answer.read()
        except http.client.RemoteDisconnected:
            return  # closed before the server has read the request
        except (OSError, http.client.HTTPException) as error:
            broken.append(repr(error))
            return
        if answer.status == 200:
            acknowledged.add(name)
        if answer.getheader("Connection") == "close":
            return


def subscribe():
    place = json.loads(get(web, f"/v2/subscribe/{sub}/quiet/0?tt=0&uuid=bob")[1])["t"]["t"]
    poll.append(get(web, f"/v2/subscribe/{sub}/quiet/0?tt={place}&uuid=bob", timeout=60))


threads = [threading.Thread(target=publish, args=(n,), daemon=True) for n in range(16)]
threads.append(threading.Thread(target=subscribe, daemon=True))
for thread in threads:
    thread.start()
wait_for(lambda: len(acknowledged) > 300)
# A worker that leases three of the messages and never acknowledges one.
worker = socket.create_connection(stomp.getsockname(), timeout=20)
worker.sendall((f"CONNECT\naccept-version:1.2\nhost:shop\nlogin:{pub}\npasscode:{keys['secretKey']}\n\n\0"
                "SUBSCRIBE\nid:1\ndestination:/queue/orders\nack:client\nprefetch-count:3\n\n\0").encode())
frames = b""
while frames.count(b"MESSAGE\n") < 3:
    frames += worker.recv(65536) or sys.exit(f"the worker's connection ended: {frames}")
metrics = get(operations, "/metrics")[1]


def metric(name):
    return float(re.search("^" + re.escape(name) + " (.*)$", metrics, re.M).group(1))


seen["openPolls"] = metric("datavault_server_open_polls")
seen["connections"] = metric("datavault_server_connections")
seen["leases"] = metric("datavault_server_leases")
seen["published"] = metric("datavault_server_messages_published_total")
seen["exit"], seen["stopSeconds"] = end(server)
for thread in threads:
    thread.join(20)
seen["poll"] = [status for status, _ in poll]
seen["broken"] = broken
seen["acknowledged"] = len(acknowledged)
seen["reports"] = [report for report in reports if report != "WATCHDOG=1"]
seen["watchdog"] = sum(report == "WATCHDOG=1" for report in reports)

# What was acknowledged is there after the next start.
server = start()
wait_for(ready)
stored, place = set(), ""
while True:
    body = json.loads(get(web, f"/v2/history/sub-key/{sub}/channel/orders?count=100&start={place}")[1])
    if not body[0]:
        break
    stored |= set(body[0])
    place = body[1]
seen["lost"] = len(acknowledged - stored)
seen["secondExit"] = end(server)[0]

text = "".join(open(home + name).read() for name in ("-log", "-access", "-access.1")) + metrics
seen["requests"] = text.count('"route":"/publish/{pub}/{sub}/0/{channel}/0"')
seen["revealed"] = [word for word in ("secret", "alice", "bob", "orders", "quiet", pub, sub)
                    if word in text]
seen["audit"] = re.findall("audit act=([a-z-]+)", text)
print(json.dumps(seen))
