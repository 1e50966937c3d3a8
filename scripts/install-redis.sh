#!/bin/sh
# Makes sure that the tests find what they need beside Go: redis-server and
# libfaketime for the runs on real servers, a C compiler for the race detector.
# It installs only what is missing, says what it does, uses sudo only when it
# is not root, and leaves no system service running that was not there before.
# Where something cannot be installed it says so and goes on: tests on real
# servers then skip on a laptop and fail when CI=true.
set -u

say() { echo "install-redis: $*" >&2; }

have_redis() { command -v redis-server >/dev/null 2>&1; }

have_faketime() {
	ls /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1 \
		/usr/lib64/faketime/libfaketime.so.1 /usr/local/lib/faketime/libfaketime.so.1 2>/dev/null | grep -q .
}

have_cc() { command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1; }

missing() {
	have_redis || printf ' redis-server'
	have_faketime || printf ' libfaketime'
	have_cc || printf ' gcc'
}

wanted=$(missing)
[ -n "$wanted" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null 2>&1; then
		say "missing:$wanted. Not root and no sudo: install them as root, for example"
		say "  apt-get install -y --no-install-recommends redis-server libfaketime gcc libc6-dev"
		exit 0
	fi
	as_root="sudo"
fi

# Debian's package starts a service at once unless a policy forbids it. The
# policy is ours only if there was none, and goes away whatever happens.
policy=/usr/sbin/policy-rc.d
made_policy=""
clean_up() {
	if [ -n "$made_policy" ]; then
		$as_root rm -f "$policy"
		made_policy=""
	fi
}
trap clean_up EXIT
trap 'clean_up; exit 130' INT TERM HUP

install_apt() {
	had_redis=""
	have_redis && had_redis=yes
	packages="$wanted"
	have_cc || packages="$packages libc6-dev"
	if [ -z "$had_redis" ] && [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null && made_policy=yes && $as_root chmod +x "$policy"
	fi
	$as_root apt-get update -qq >&2 || say "apt-get update failed; trying with the package lists that are here"
	# shellcheck disable=SC2086 # a list of words
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >&2 ||
		say "apt-get could not install$wanted"
	# The package enables its service for the next boot; one that was there
	# before us is none of our business.
	if [ -z "$had_redis" ] && [ -d /run/systemd/system ]; then
		$as_root systemctl disable --now redis-server >/dev/null 2>&1
	fi
}

if command -v apt-get >/dev/null 2>&1; then
	say "installing with apt-get${as_root:+ (through sudo)}:$wanted"
	install_apt
elif command -v dnf >/dev/null 2>&1; then
	say "installing with dnf${as_root:+ (through sudo)}:$wanted"
	# shellcheck disable=SC2046,SC2086 # a list of words
	$as_root dnf install -y -q $(echo $wanted | sed 's/redis-server/redis/') >&2
elif command -v apk >/dev/null 2>&1; then
	say "installing with apk${as_root:+ (through sudo)}: redis (libfaketime needs glibc, so real servers stay untested)"
	$as_root apk add -q redis gcc musl-dev >&2
else
	say "no package manager that is known here"
fi

left=$(missing)
if [ -n "$left" ]; then
	say "still missing:$left. Tests on real servers will skip, or fail when CI=true"
	exit 0
fi
say "done"
