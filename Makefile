# Each target works on its own on a new Debian 12 machine with Swift and root or sudo.

# Flags for the build of the tests. .ci/run passes those of `make lint`, so that both share one build. For
# very many states of `make crash`, use "-c release -Xswiftc -enable-testing".
SWIFT_FLAGS ?=
# The runs of `make test-stability` (10), and the kill runs of `make crash` (200).
RUNS ?=
# The states of each workload of `make crash`.
STATES ?= 20000
# 0 leaves SQLite's own tests out of `make crash`.
SQLITE_SUITE ?= 1
# Seconds for each harness of `make fuzz`.
SECONDS_EACH ?= 60
# Steps of `make simulate`.
STEPS ?= 1000000
# Minutes of `make soak`.
MINUTES ?= 60

# The test files of `make sqlite-suite`: all, or names and patterns.
FILES ?=

# Where `make install` installs, below DESTDIR.
PREFIX ?= /usr/local
DESTDIR ?=
# The programs that `make install` installs.
PROGRAMS ?= datavault

.PHONY: demo demo-network demo-cluster test test-stability bench bench-cluster crash sqlite-suite grdb-suite simulate fuzz sanitize soak nightly lint extension docs install uninstall deb deb-test

# The main use on real input. Prints what it compared and searched, last.
demo:
	@scripts/demo

# The message server on real input, with the stock clients of PubNub, Pusher and STOMP: live and as jobs, over a kill -9
# and a restart sealed. Prints what it compared and searched, last.
demo-network:
	@scripts/demo-network

# One queue on two nodes over three brokers of NATS, with the stock clients of PubNub and STOMP, while a broker and the
# owner of the leases are killed. Prints what it compared and searched, last.
demo-cluster:
	@scripts/demo-cluster

# The whole test suite, or the tests whose identifier matches FILTER. Prints what failed, with its log, and the summaries.
test:
	@scripts/test $(SWIFT_FLAGS)

# The whole suite RUNS times, beside programs that compute and one that waits for the disk. Prints a table of what failed.
test-stability:
	@TEST_RUNS=$(or $(RUNS),10) scripts/test $(SWIFT_FLAGS)

# Simulated power failures by sector, kill runs of a publishing process, and a share of SQLite's own tests.
# Prints states, workloads, lost (0), wrong (0), then runs, acknowledged, lost (0), wrong (0), then SQLite's totals.
crash:
	@RUNS=$(RUNS) STATES=$(STATES) scripts/crash $(SWIFT_FLAGS)
	@[ "$(SQLITE_SUITE)" = 0 ] || SHARE=crash scripts/sqlite-suite

# SQLite's own tests on sealed databases, compared with plain ones. FILES="savepoint* ioerr" runs some test files,
# SHARE=crash about ten minutes of them, PART=1/4 every fourth; VERSION=newest runs those of Debian's newest SQLite.
# Prints files, cases, expected differences, unexpected (0).
sqlite-suite:
	@set -f; VERSION=$(VERSION) SHARE=$(SHARE) PART=$(PART) scripts/sqlite-suite $(FILES)

# GRDB's own tests over sealed databases, and over plain ones for comparison. Prints tests, differences expected,
# unexpected (0).
grdb-suite:
	@scripts/grdb-suite

# STEPS steps of the simulation of replication, in a release build, then each rule turned off. Prints what each missing
# rule breaks, then steps, commits, crashes, repairs, lost (0), twice (0), wrong (0).
simulate:
	@STEPS=$(STEPS) scripts/simulate

# Fuzzing of all inputs, raw and sealed again, with twenty-two harnesses. Prints harness, executions, crashes (0).
fuzz:
	@SECONDS_EACH=$(SECONDS_EACH) scripts/fuzz

# The suite under the address and the thread sanitizer. Prints findings (0).
sanitize:
	@scripts/sanitize

# The engine at full load for MINUTES. Prints messages, lost (0), and memory and file size at start and end.
soak:
	@MINUTES=$(MINUTES) scripts/soak

# The runs that take too long for CI, in parts of at most 45 minutes. PART=fuzz runs one part: exhaustive-libraries,
# exhaustive-others, wipe, fuzz, crash, kills, server, backups, model, sqlite-suite-1 to -4, grdb-suite, sanitize-address, sanitize-thread, bench, soak,
# examples, deb. Prints a row for docs/development/nightly.md each.
nightly:
	@scripts/nightly $(PART)

# The formatting, and a build of everything with warnings as errors.
lint:
	@scripts/lint $(SWIFT_FLAGS)

# Benchmarks: ratios to plain SQLite, compared with SQLCipher and SQLite3 Multiple Ciphers, to openssl speed and
# to PBKDF2. Prints a row with "met" or "missed" each. BENCH_ONLY=word measures the rows that contain the word.
bench:
	@scripts/bench

# Two nodes over three brokers, beside a local commit and the C client of NATS. Prints a row each, some with a goal.
bench-cluster:
	@scripts/bench-cluster

# The library libsealedsqlite.so for the sqlite3 shell and Python. Prints its path last.
extension:
	@scripts/extension

# The documentation of SealedSQLite and MessagingQueue, with warnings as errors, and the programs of their first
# page and tutorial, each in its own package.
docs:
	@scripts/docs

# The command, its man pages and its completion, and libsealedsqlite.so, into PREFIX.
# PROGRAMS="datavault datavaultd" also installs the message server.
install:
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" PROGRAMS="$(PROGRAMS)" scripts/install

# Removes what `make install` has installed. Vaults and queues stay.
uninstall:
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install --uninstall

# The packages of Debian 12, checked with lintian. Prints their names and sizes last.
deb:
	@scripts/deb

# The packages installed, used, upgraded and purged in a new minimal root. Prints the checks last. Needs root.
deb-test:
	@scripts/deb-test
