# Each target is enough on its own on a fresh Debian 12 machine with Swift and root or sudo.

# Added to the build of the tests: .ci/run sets the flags of the lint here, so that the two share one
# build; "-c release -Xswiftc -enable-testing" suits very many states of `make crash`.
SWIFT_FLAGS ?=
# Kill runs of `make crash`, and the states of each of its workloads; `make test` does fewer.
RUNS ?= 200
STATES ?= 20000
# Seconds for each harness of `make fuzz`.
SECONDS_EACH ?= 60
# How long `make soak` runs.
MINUTES ?= 60

.PHONY: demo test bench crash fuzz sanitize soak nightly lint extension docs

# The main job on real input: what it compared and searched, last.
demo:
	@scripts/demo

# The whole suite: the runner's summary last.
test:
	@scripts/test $(SWIFT_FLAGS)

# Power cuts, rebuilt by the sector and opened, then kill runs of a publishing process: states,
# workloads, lost (0), wrong (0); runs, acknowledged, lost (0), wrong (0).
crash:
	@RUNS=$(RUNS) STATES=$(STATES) scripts/crash $(SWIFT_FLAGS)

# Changed bytes of what is read, raw and sealed again, by ten harnesses: harness, executions, crashes (0).
fuzz:
	@SECONDS_EACH=$(SECONDS_EACH) scripts/fuzz

# The suite under the address and the thread sanitizer: findings (0).
sanitize:
	@scripts/sanitize

# The engine at full load for MINUTES: messages, lost (0), memory and file size first and last.
soak:
	@MINUTES=$(MINUTES) scripts/soak

# What CI is too short for, in parts of 45 minutes at most; PART=fuzz runs one: fuzz, crash, kills, model,
# sanitize-address, sanitize-thread, bench, soak, examples. A row for docs/development/nightly.md each, last.
nightly:
	@scripts/nightly $(PART)

# Formatting, and a build of everything, in which no warning is left.
lint:
	@scripts/lint

# Ratios to plain SQLite, beside those of SQLCipher and SQLite3 Multiple Ciphers; to openssl speed and to
# the bare PBKDF2: met or missed, a row each. BENCH_ONLY=word measures the rows whose names hold the word.
bench:
	@scripts/bench

# libsealedsqlite.so, which the sqlite3 shell and Python load: where it is, last.
extension:
	@scripts/extension

# The documentation of SealedSQLite and MessagingQueue without a warning; the first program of the one and
# the tutorial of the other, each in a package of its own.
docs:
	@scripts/docs
