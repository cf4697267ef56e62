"""The machine of the story: a home, the two programs, and real lines."""
import glob, gzip, json, os, socket, subprocess, time, urllib.error, urllib.request

from demo_network.report import require, say, wait


def free_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


class Machine:
    """The home and the server's process, which is ended whatever happens."""

    def __init__(self, work, binaries):
        self.work, self.binaries, self.home, self.server = work, binaries, work / "home", None
        self.home.mkdir(mode=0o700)
        self.password = self.secret("password", "correct horse battery staple\n")
        self.wrong = self.secret("wrong", "wrong\n")
        self.log = open(work / "log", "wb")
        # What a server is started with beside.
        self.options = []
        self.origin, self.stomp = free_address(), free_address()

    def secret(self, name, text):
        path = self.work / name
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(text)
        return str(path)

    def run(self, program, *arguments, statuses=(0,)):
        # Detached from the terminal, so that a missing password is an error instead of a prompt.
        done = subprocess.run(
            [self.binaries / program, *arguments, "--home", self.home], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        require(done.returncode in statuses,
                f"exit code {done.returncode} of {program} {' '.join(arguments[:2])}: {done.stderr}")
        return done

    def start(self):
        self.server = subprocess.Popen(
            [self.binaries / "datavaultd", "serve", "--listen", self.origin, "--stomp-listen", self.stomp,
             "--home", self.home, *self.options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True)
        for url in (f"http://{self.origin}", f"stomp://{self.stomp}"):
            line = self.server.stdout.readline().decode().strip()
            require(line == f"listening on {url}", f"the server printed '{line}'")
            say(line)

    def kill(self):
        if self.server:
            self.server.kill()
            self.server.wait()
            self.server = None

    def stop(self):
        self.server.terminate()
        status, self.server = self.server.wait(30), None
        require(status == 0, f"the server ended with {status} after SIGTERM")

    def status(self, path):
        try:
            return urllib.request.urlopen(f"http://{self.origin}{path}", timeout=5).status
        except urllib.error.HTTPError as error:
            return error.code

    def require_sealed(self):
        require(self.status("/time/0") == 200, "/time does not answer")
        require(self.status("/v2/history/sub-key/x/channel/c") == 503, "the server is not sealed")

    def open_jobs(self):
        """How many jobs of the consumer `default` are not done."""
        stats = json.loads(self.run("datavault", "queue", "stats", "--json", "--password-file", self.password).stdout)
        return sum(consumer[kind] for channel in stats["channels"] for consumer in channel["consumers"]
                   for kind in ("ready", "leased", "waiting", "deadLetters"))

    def unlock(self):
        """Tries a wrong password, then the right one; returns when the command has ended."""
        wrong = self.run("datavault", "unlock", "messaging", "--password-file", self.wrong, statuses=(77,))
        say("a wrong password: exit code 77")
        for line in wrong.stderr.splitlines():
            say(f"  {line}")
        self.require_sealed()
        self.run("datavault", "unlock", "messaging", "--for", "10m", "--password-file", self.password)
        unlocked = time.monotonic()
        wait(lambda: self.status("/v2/history/sub-key/x/channel/c") != 503, 5, "the server stayed sealed")
        return unlocked


def real_lines(count):
    """So many lines of the machine's own documents, and how many there are from where."""
    lines, sources = [], []
    for name, pattern in [("package changelogs", "/usr/share/doc/**/changelog*"),
                          ("copyright files", "/usr/share/doc/*/copyright"),
                          ("C headers", "/usr/include/*.h"), ("perl modules", "/usr/share/perl/**/*.pm"),
                          ("the package log", "/var/log/dpkg.log*")]:
        before = len(lines)
        for path in sorted(glob.glob(pattern, recursive=True)):
            if len(lines) < min(count, before + count // 3) and os.path.isfile(path):
                with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
                    found = [line.rstrip(b"\n").decode("utf-8", "replace") for line in file.readlines(100_000)]
                # At most a few from each file, so that they come from many.
                lines += [line for line in found if len(line) >= 2][:20][:count - len(lines)]
        if len(lines) > before:
            sources.append(f"{len(lines) - before:,} of {name}")
    require(len(lines) == count, f"only {len(lines)} real lines found on this machine")
    return lines, ", ".join(sources)
