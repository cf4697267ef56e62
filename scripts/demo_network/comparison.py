"""What the story compares and searches."""
import json, os, re, sqlite3, subprocess, time

from demo_network.clients import CHANNELS
from demo_network.report import require, say, wait

PIECE = 24


def compare(stored, acknowledged, lines, subscribers):
    places = [event[0] for event in stored]
    require(len(places) == len(set(places)), "history has a timetoken twice")
    missing = set(acknowledged) - set(places)
    require(not missing, f"{len(missing)} acknowledged messages are not in history")
    for place, channel, message in stored:
        number = message["number"]
        require(message["line"] == lines[number] and channel == CHANNELS[number % 2],
                f"message {place} differs from the published line")
    require({event[2]["number"] for event in stored} == set(range(len(lines))), "a line is not in history")
    say(f"history: {len(stored):,} messages, each equal to its line; all {len(acknowledged):,} acknowledged ones")
    if unanswered := len(stored) - len(acknowledged):
        say(f"  {unanswered} more are stored: they had no answer, so their publishers sent them again")
    for received in subscribers:
        wait(lambda: len(received.events) >= len(stored), 30,
             lambda: f"subscriber {received.name} got {len(received.events)} of {len(stored)} messages")
    time.sleep(0.5)  # One that comes twice would come now.
    for received in subscribers:
        got = [event[0] for event in received.events]
        require(len(got) == len(set(got)), f"subscriber {received.name} got a message twice")
        # Within a poll, an SDK delivers in the order of the log, over all channels.
        require(received.events == stored, f"subscriber {received.name} differs from history")
        say(f"subscriber {received.name}: {len(got):,} messages, each timetoken once, in the order of history")


def job_of(message):
    """What tells a stored message apart from all others."""
    return message["number"], message["attempt"]


def compare_live(stored, received, live):
    """A Pusher client has what came while it was connected: all but one gap, the time from the kill to its return."""
    missed = 0
    for channel in CHANNELS:
        wanted = [job_of(message) for _, of, message in stored if of == channel]
        got = [job_of(message) for message in received.events[channel]]
        require(len(got) == len(set(got)), f"{received.name} got an event of {channel} twice")
        first = next((n for n, pair in enumerate(zip(wanted, got)) if pair[0] != pair[1]), min(len(wanted), len(got)))
        require(first >= live[channel], f"{received.name} missed an event of {channel} while it was connected")
        rest = len(got) - first
        require(got[first:] == wanted[len(wanted) - rest:], f"{received.name}: the events of {channel} have two gaps")
        require(rest > 0, f"{received.name} got no event of {channel} after it came back")
        missed += len(wanted) - len(got)
    count = sum(len(events) for events in received.events.values())
    say(f"subscriber {received.name}: {count:,} events, each once, in the order of history;")
    say(f"  {missed} were published while it was away, as Pusher's clients expect")
    return count


def compare_jobs(stored, jobs):
    """Every stored message was a job that was done, and no job came again after its acknowledgement."""
    wanted = {job_of(message) for _, _, message in stored}
    with jobs.changed:
        require(set(jobs.delivered) == wanted, f"{len(wanted ^ set(jobs.delivered))} jobs are not those of history")
        require(jobs.done | jobs.unknown == wanted, f"{len(wanted - jobs.done - jobs.unknown)} jobs are not done")
        require(not jobs.repeated, f"{len(jobs.repeated)} jobs came again after their acknowledgement")
        again = sum(count > 1 for count in jobs.delivered.values())
        say(f"workers: {len(wanted):,} jobs done, none again after its acknowledgement;")
        say(f"  {again} came twice, because the kill ended their leases")
        if jobs.unknown:
            say(f"  {len(jobs.unknown)} acknowledgements had no receipt before the kill, and were stored")
    return len(wanted), again


def pieces_of(lines, secrets):
    """Texts that a plain file would contain: starts of lines that JSON does not escape, channels, keys, tokens."""
    plain = re.compile(r"[ !#-\[\]-~]{%d}" % PIECE)
    return sorted({match[0] for line in lines if (match := plain.match(line))} | set(CHANNELS) | set(secrets)
                  | {"SQLite format 3", "CREATE TABLE"})


def search(pieces, files, work):
    """The pieces that any of the files contains."""
    (work / "pieces").write_text("\n".join(pieces) + "\n")
    found = set()
    for file in files:
        grep = subprocess.run(["grep", "-a", "-o", "-F", "-f", work / "pieces", "--", file],
                              stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"})
        require(grep.returncode <= 1, f"the search could not read {file}")
        found |= set(grep.stdout.decode("utf-8", "replace").splitlines())
    return found


def search_home(machine, pieces, when):
    files = [path for path in machine.home.rglob("*") if path.is_file()] + [machine.work / "log"]
    found = search(pieces, files, machine.work)
    require(not found, f"{len(found)} pieces of plaintext in the files {when}")
    size = sum(path.stat().st_size for path in files)
    say(f"searched {len(files)} files, {size:,} bytes, {when}: nothing found")
    return len(files), size


def search_control(machine, pieces, stored, secrets):
    """The same search on a plain SQLite file with what the home has."""
    control = sqlite3.connect(machine.work / "plain.db")
    control.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, channel TEXT, payload TEXT)")
    control.executemany("INSERT INTO messages(channel, payload) VALUES(?, ?)",
                        [(channel, json.dumps(message)) for _, channel, message in stored]
                        + [("secret", secret) for secret in secrets])
    control.commit()
    control.close()
    found = search(pieces, [machine.work / "plain.db"], machine.work)
    # grep does not report a match that overlaps an earlier one.
    content = (machine.work / "plain.db").read_bytes()
    missed = [piece for piece in pieces if piece not in found and piece.encode() not in content]
    require(not missed, f"the search does not work: {len(missed)} of {len(pieces)} pieces not found in a plain file")
