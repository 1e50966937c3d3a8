#!/bin/sh
# Makes sure that redis-server and libfaketime are here, for tests on real
# servers. Says what it does, uses sudo only when it is not root, and leaves no
# system service running. Where they cannot be installed it says so and goes
# on: the tests then skip on a laptop and fail when CI=true.
set -u

have_faketime() {
	ls /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1 \
		/usr/lib64/faketime/libfaketime.so.1 /usr/local/lib/faketime/libfaketime.so.1 2>/dev/null | grep -q .
}

have_redis() { command -v redis-server >/dev/null 2>&1; }

if have_redis && have_faketime; then
	exit 0
fi

sudo=""
if [ "$(id -u)" != 0 ]; then
	sudo="sudo"
fi

say() { echo "install-redis: $*" >&2; }

install_apt() {
	say "installing redis-server and libfaketime with apt-get ${sudo:+(through sudo)}"
	# Debian's package starts a service at once unless a policy forbids it.
	policy=/usr/sbin/policy-rc.d
	made=""
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null && $sudo chmod +x "$policy" && made=yes
	fi
	$sudo apt-get update -qq >&2
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends redis-server libfaketime >&2
	status=$?
	if [ -n "$made" ]; then
		$sudo rm -f "$policy"
	fi
	# Where systemd runs, the package has enabled the service for the next boot.
	if [ -d /run/systemd/system ]; then
		$sudo systemctl disable --now redis-server >/dev/null 2>&1
	fi
	return $status
}

if command -v apt-get >/dev/null 2>&1; then
	install_apt
elif command -v dnf >/dev/null 2>&1; then
	say "installing redis and libfaketime with dnf ${sudo:+(through sudo)}"
	$sudo dnf install -y -q redis libfaketime >&2
elif command -v apk >/dev/null 2>&1; then
	say "installing redis with apk (libfaketime needs glibc, so clock jumps stay untested)"
	$sudo apk add -q redis >&2
else
	say "no package manager that is known here"
fi

if have_redis && have_faketime; then
	say "done"
	exit 0
fi
say "redis-server or libfaketime is still missing: tests on real servers will skip, or fail when CI=true"
exit 0
