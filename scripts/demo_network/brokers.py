"""Brokers of NATS, a cluster of three, each in a process that is ended whatever happens."""
import contextlib, signal, subprocess, urllib.request

from demo_network.machine import free_address
from demo_network.report import require


class Brokers:
    def __init__(self, work, program, nkeys):
        self.work, self.program, self.processes = work, program, {}
        self.addresses = [free_address() for _ in range(3)]
        self.monitors = [free_address() for _ in range(3)]
        self.routes = [free_address() for _ in range(3)]
        users = ", ".join(f"{{ nkey: {nkey} }}" for nkey in nkeys)
        for number in range(3):
            routes = ", ".join(f'"nats://{route}"' for route in self.routes)
            (work / f"broker{number}.conf").write_text(f"""
server_name: broker{number}
listen: {self.addresses[number]}
http: {self.monitors[number]}
jetstream {{ store_dir: "{work}/store{number}", cipher: chachapoly, key: "key of broker {number}" }}
cluster {{ name: demo, listen: "{self.routes[number]}", routes: [{routes}] }}
authorization {{ users: [{users}] }}
""")
            self.start(number)

    def start(self, number):
        self.processes[number] = subprocess.Popen(
            [self.program, "-c", self.work / f"broker{number}.conf", "-l", self.work / f"broker{number}.log"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def kill(self, number):
        self.processes[number].kill()
        self.processes.pop(number).wait()

    def end(self):
        for number in list(self.processes):
            self.kill(number)

    @contextlib.contextmanager
    def paused(self):
        """No broker works in this time: otherwise their files come and go."""
        for process in self.processes.values():
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in self.processes.values():
                process.send_signal(signal.SIGCONT)

    def monitoring(self):
        """Everything that the brokers tell who asks their monitoring ports."""
        answers = []
        for address in self.monitors:
            for path in ("varz", "connz?subs=detail", "routez", "subsz?subs=1",
                         "jsz?accounts=1&streams=1&consumers=1&config=1"):
                try:
                    answers.append(urllib.request.urlopen(f"http://{address}/{path}", timeout=5).read().decode())
                except OSError:
                    pass
        require(answers, "no broker answers")
        return answers

    def options(self):
        return [word for address in self.addresses for word in ("--broker", f"nats://{address}")]

    def files(self):
        return [path for number in range(3) for path in (self.work / f"store{number}").rglob("*") if path.is_file()] + [
            self.work / f"broker{number}.log" for number in range(3)]
