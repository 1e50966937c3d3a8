#!/bin/sh
# Makes sure that the tests find what they need beside Go: redis-server and
# libfaketime for the runs on real servers, PostgreSQL's binaries for a resource
# in a database, a C compiler for the race detector, chromium for the tests of
# the HTML pages, xmllint for those of JUnit's XML.
# It installs only what is missing, says what it does, uses sudo only when it
# is not root, and leaves no system service running that was not there before.
# Where something cannot be installed it says so and goes on: the tests that
# need it then skip on a laptop and fail when CI=true.
set -u

say() { echo "install-test-tools: $*" >&2; }

have_redis() { command -v redis-server >/dev/null 2>&1; }

have_faketime() {
	ls /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1 \
		/usr/lib64/faketime/libfaketime.so.1 /usr/local/lib/faketime/libfaketime.so.1 2>/dev/null | grep -q .
}

# The tests make clusters of their own with these two.
have_postgres() {
	{ command -v initdb && command -v postgres; } >/dev/null 2>&1 && return 0
	for dir in /usr/lib/postgresql/*/bin; do
		[ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] && return 0
	done
	return 1
}

have_cc() { command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1; }

have_xmllint() { command -v xmllint >/dev/null 2>&1; }

# The names are those that the tests look for.
have_browser() {
	for name in chromium chromium-browser google-chrome google-chrome-stable headless-shell; do
		command -v "$name" >/dev/null 2>&1 && return 0
	done
	return 1
}

missing() {
	have_redis || printf ' redis-server'
	have_faketime || printf ' libfaketime'
	have_postgres || printf ' postgresql'
	have_cc || printf ' gcc'
	have_xmllint || printf ' libxml2-utils'
	have_browser || printf ' chromium'
}

wanted=$(missing)
[ -n "$wanted" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null 2>&1; then
		say "missing:$wanted. Not root and no sudo: install them as root, for example"
		say "  apt-get install -y --no-install-recommends redis-server libfaketime postgresql gcc libc6-dev libxml2-utils chromium"
		exit 0
	fi
	as_root="sudo"
fi

# Debian's package starts a service at once unless a policy forbids it. The
# policy is ours only if there was none, and goes away whatever happens.
policy=/usr/sbin/policy-rc.d
made_policy=""
# Debian's postgresql makes a cluster of its own while it is installed, unless it
# finds this file. What the package brings as its own goes in its place.
cluster_conf=/etc/postgresql-common/createcluster.conf
made_conf=""
clean_up() {
	if [ -n "$made_conf" ]; then
		if [ -e /usr/share/postgresql-common/createcluster.conf ]; then
			$as_root cp /usr/share/postgresql-common/createcluster.conf "$cluster_conf"
			$as_root rm -f "$cluster_conf.ucf-dist" # the package's proposal, which it is now
		else
			$as_root rm -f "$cluster_conf"
		fi
		made_conf=""
	fi
	if [ -n "$made_policy" ]; then
		$as_root rm -f "$policy"
		made_policy=""
	fi
}
trap clean_up EXIT
trap 'clean_up; exit 130' INT TERM HUP

apt_install() {
	[ $# -gt 0 ] || return 0
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2 ||
		say "apt-get could not install $*"
}

install_apt() {
	had_redis=""
	have_redis && had_redis=yes
	had_postgres=""
	have_postgres && had_postgres=yes
	packages=$(printf '%s' "$wanted" | sed 's/ chromium//')
	have_cc || packages="$packages libc6-dev"
	if [ -z "$had_postgres" ] && [ ! -e "$cluster_conf" ]; then
		$as_root mkdir -p "${cluster_conf%/*}"
		echo 'create_main_cluster = false' | $as_root tee "$cluster_conf" >/dev/null && made_conf=yes
	fi
	if { [ -z "$had_redis" ] || [ -z "$had_postgres" ]; } && [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null && made_policy=yes && $as_root chmod +x "$policy"
	fi
	$as_root apt-get update -qq >&2 || say "apt-get update failed; trying with the package lists that are here"
	# shellcheck disable=SC2086 # a list of words
	apt_install $packages
	# On its own, so that a system without the package still gets the others.
	if grep -q '^ID=ubuntu' /etc/os-release 2>/dev/null; then # its package is a stub that wants snapd
		have_browser || say "Ubuntu has no package of a browser: install google-chrome-stable from Google"
	elif ! have_browser; then
		apt_install chromium
	fi
	# The package enables its service for the next boot; one that was there
	# before us is none of our business.
	if [ -z "$had_redis" ] && [ -d /run/systemd/system ]; then
		$as_root systemctl disable --now redis-server >/dev/null 2>&1
	fi
	if [ -z "$had_postgres" ] && [ -d /run/systemd/system ]; then
		$as_root systemctl disable --now postgresql >/dev/null 2>&1
	fi
}

if command -v apt-get >/dev/null 2>&1; then
	say "installing with apt-get${as_root:+ (through sudo)}:$wanted"
	install_apt
elif command -v dnf >/dev/null 2>&1; then
	say "installing with dnf${as_root:+ (through sudo)}:$wanted"
	# shellcheck disable=SC2046,SC2086 # a list of words
		say "  apt-get install -y --no-install-recommends redis-server libfaketime postgresql gcc libc6-dev libxml2-utils chromium"
else
	say "no package manager that is known here"
fi

left=$(missing)
if [ -n "$left" ]; then
	say "still missing:$left. The tests that need it will skip, or fail when CI=true"
	exit 0
fi
say "done"
