#!/bin/sh
# Makes sure that the tests find what they need beside Go: redis-server and
# libfaketime for the runs on real servers, a C compiler for the race detector,
# chromium for the tests of the HTML pages, xmllint for those of JUnit's XML,
# etcd, ZooKeeper (with a Java) and PostgreSQL for the locks on those and for a
# protected resource in a database.
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

have_cc() { command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1; }

have_xmllint() { command -v xmllint >/dev/null 2>&1; }

# The names are those that the tests look for.
have_browser() {
	for name in chromium chromium-browser google-chrome google-chrome-stable headless-shell; do
		command -v "$name" >/dev/null 2>&1 && return 0
	done
	return 1
}

# The tests make clusters of their own with these two.
have_postgres() {
	{ command -v initdb && command -v postgres; } >/dev/null 2>&1 && return 0
	for dir in /usr/lib/postgresql/*/bin; do
		[ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] && return 0
	done
	return 1
}

have_etcd() { command -v etcd >/dev/null 2>&1; }

have_zookeeper() { command -v java >/dev/null 2>&1 && [ -e /usr/share/java/zookeeper.jar ]; }

missing() {
	have_redis || printf ' redis-server'
	have_faketime || printf ' libfaketime'
	have_cc || printf ' gcc'
	have_xmllint || printf ' libxml2-utils'
	have_etcd || printf ' etcd-server'
	have_zookeeper || printf ' libzookeeper-java default-jre-headless' # no start script, no desktop
	have_postgres || printf ' postgresql'
	have_browser || printf ' chromium'
}

wanted=$(missing)
[ -n "$wanted" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null 2>&1; then
		say "missing:$wanted. Not root and no sudo: install them as root, for example"
		say "  apt-get install -y --no-install-recommends redis-server libfaketime gcc libc6-dev libxml2-utils etcd-server libzookeeper-java default-jre-headless postgresql chromium"
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
	# Services that the packages bring along, of those that were not there.
	services=""
	have_redis || services="$services redis-server"
	have_etcd || services="$services etcd"
	have_postgres || services="$services postgresql"
	stores=' etcd-server| libzookeeper-java default-jre-headless| postgresql'
	packages=$(printf '%s' "$wanted" | sed -E "s/ chromium|$stores//g")
	have_cc || packages="$packages libc6-dev"
	if ! have_postgres && [ ! -e "$cluster_conf" ]; then
		$as_root mkdir -p "${cluster_conf%/*}"
		echo 'create_main_cluster = false' | $as_root tee "$cluster_conf" >/dev/null && made_conf=yes
	fi
	if [ -n "$services" ] && [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null && made_policy=yes && $as_root chmod +x "$policy"
	fi
	$as_root apt-get update -qq >&2 || say "apt-get update failed; trying with the package lists that are here"
	# shellcheck disable=SC2086 # a list of words
	apt_install $packages
	# On their own, so that a system without one package still gets the others.
	have_etcd || apt_install etcd-server
	have_zookeeper || apt_install libzookeeper-java default-jre-headless
	have_postgres || apt_install postgresql
	if grep -q '^ID=ubuntu' /etc/os-release 2>/dev/null; then # its package is a stub that wants snapd
		have_browser || say "Ubuntu has no package of a browser: install google-chrome-stable from Google"
	elif ! have_browser; then
		apt_install chromium
	fi
	# The package enables its service for the next boot; one that was there
	# before us is none of our business.
	if [ -n "$services" ] && [ -d /run/systemd/system ]; then
		# shellcheck disable=SC2086 # a list of words
		$as_root systemctl disable --now $services >/dev/null 2>&1
	fi
}

if command -v apt-get >/dev/null 2>&1; then
	say "installing with apt-get${as_root:+ (through sudo)}:$wanted"
	install_apt
elif command -v dnf >/dev/null 2>&1; then
	say "installing with dnf${as_root:+ (through sudo)}:$wanted"
	# shellcheck disable=SC2046,SC2086 # a list of words
	$as_root dnf install -y -q $(echo $wanted | sed 's/redis-server/redis/; s/chromium/chromium-headless/; s/libxml2-utils/libxml2/; s/etcd-server//; s/libzookeeper-java default-jre-headless//; s/postgresql/postgresql-server/') >&2
elif command -v apk >/dev/null 2>&1; then
	say "installing with apk${as_root:+ (through sudo)}: redis, chromium, libxml2-utils (libfaketime needs glibc, so real servers stay untested)"
	$as_root apk add -q redis gcc musl-dev chromium font-dejavu libxml2-utils >&2
else
	say "no package manager that is known here"
fi

left=$(missing)
if [ -n "$left" ]; then
	say "still missing:$left. The tests that need it will skip, or fail when CI=true"
	exit 0
fi
say "done"
