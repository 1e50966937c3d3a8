#!/bin/sh
# Runs a command with a Docker engine at hand:
#
#   scripts/with-docker.sh go test ./...
#
# An engine that answers is used and left alone. Where none does, this script
# installs what is missing (docker.io and iptables on Debian), starts dockerd
# with its default flags, and becomes the command. A keeper stays behind that
# waits for the command to end, however it ends, and then stops dockerd, with
# all that still ran in it. Commands that run side by side share the engine; the
# keeper of the last one stops it. Sudo is used only by those who are not root.
# Where no engine can be had the script says so and runs the command all the
# same: the tests that need one then skip on a laptop and fail when CI=true.
set -u

say() { echo "with-docker: $*" >&2; }

PATH="$PATH:/usr/sbin:/sbin"
state=/run/holdfast-docker # root's; shared by all who run this script
started=$state/dockerd.pid # the engine that one of these scripts started
users=$state/users         # a file for each command that uses it: "pid-birth"

answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

# is_dockerd is false for one that has ended and waits to be reaped, which can
# take long where the first process of a machine or container is no real init.
is_dockerd() { [ -n "$1" ] && grep -q '^[0-9]* (dockerd) [^ZX]' "/proc/$1/stat" 2>/dev/null; }

ours_runs() { is_dockerd "$(cat $started 2>/dev/null)"; }

# any_dockerd looks for an engine, whoever started it: a second one beside it
# would fight it for its bridge and its rules.
any_dockerd() { cat /proc/[0-9]*/stat 2>/dev/null | grep -q '^[0-9]* (dockerd) [^ZX]'; }

# birth is when a process was started, in ticks since boot: with it a pid names
# one process for good. The name in the second field may hold spaces.
birth() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

lives() { # PID-BIRTH
	[ "$(birth "${1%-*}")" = "${1#*-}" ] && ! grep -q '^[0-9]* (.*) [ZX] ' "/proc/${1%-*}/stat" 2>/dev/null
}

have_engine() {
	command -v dockerd >/dev/null 2>&1 && command -v docker >/dev/null 2>&1 && command -v iptables >/dev/null 2>&1
}

install_engine() {
	have_engine && return 0
	if command -v apt-get >/dev/null 2>&1; then
		say "no Docker engine here: installing docker.io and iptables with apt-get"
		apt_install
	elif command -v dnf >/dev/null 2>&1; then
		say "no Docker engine here: installing moby-engine, docker-cli and iptables with dnf"
		dnf install -y -q moby-engine docker-cli iptables >&2
	elif command -v apk >/dev/null 2>&1; then
		say "no Docker engine here: installing docker and iptables with apk"
		apk add -q docker iptables >&2
	else
		say "no Docker engine here, and no package manager that is known"
	fi
	have_engine
}

# apt_install keeps the package from starting a service, now and at the next
# boot. The policy is ours only if there was none.
apt_install() {
	policy=/usr/sbin/policy-rc.d
	made_policy=""
	if [ ! -e $policy ]; then
		printf '#!/bin/sh\nexit 101\n' >$policy && made_policy=yes && chmod +x $policy
	fi
	apt-get update -qq >&2 || say "apt-get update failed; trying with the package lists that are here"
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io iptables >&2 ||
		say "apt-get could not install docker.io and iptables"
	[ -z "$made_policy" ] || rm -f $policy
	if [ -d /run/systemd/system ]; then
		systemctl disable --now docker.service docker.socket containerd.service >/dev/null 2>&1
	fi
}

# start_engine starts dockerd and waits until it answers. The lock is closed to
# it, and it leads a session of its own: an interrupt at the terminal is for the
# command, which needs the engine to clean up.
start_engine() {
	[ -e /sys/class/net/docker0 ] || : >$state/no-bridge
	cat /proc/sys/net/ipv4/ip_forward >$state/ip_forward 2>/dev/null
	setsid dockerd >$state/dockerd.log 2>&1 </dev/null 9>&- &
	echo $! >$started
	i=0
	while ! answers; do
		i=$((i + 1))
		if [ $i -gt 150 ] || { [ $i -gt 10 ] && ! ours_runs; }; then
			say "dockerd did not come up. Its last words:"
			tail -n 5 $state/dockerd.log >&2
			stop_engine
			return 1
		fi
		sleep 0.2
	done
}

# stop_engine stops the dockerd that one of these scripts started. It takes down
# the bridge and the forwarding that dockerd had put up; its chains of iptables
# rules stay, as after any dockerd.
stop_engine() {
	pid=$(cat $started 2>/dev/null)
	if is_dockerd "$pid"; then
		kill "$pid"
		i=0
		while is_dockerd "$pid" && [ $i -lt 200 ]; do
			sleep 0.1
			i=$((i + 1))
		done
		is_dockerd "$pid" && kill -9 "$pid"
	fi
	if [ -e $state/no-bridge ]; then
		ip link delete docker0 2>/dev/null
		[ "$(cat $state/ip_forward 2>/dev/null)" != 0 ] || echo 0 >/proc/sys/net/ipv4/ip_forward
	fi
	rm -f $started $state/no-bridge $state/ip_forward
}

# enter, as root and under the lock, makes sure of an engine for a command and
# leaves a keeper behind if the engine is ours to stop.
enter() { # PID UID
	mkdir -p $users
	if ! ours_runs; then
		answers && return
		if any_dockerd; then
			say "a Docker engine runs here but does not answer: $(docker version 2>&1 | tail -n 1)"
			return
		fi
		install_engine && start_engine || return
		say "started dockerd $(docker version --format '{{.Server.Version}}') for this command; it is stopped when the command ends"
	fi
	# A user who is not root may talk to the engine that was started for him.
	[ "$2" = 0 ] || chown "$2" /var/run/docker.sock
	user="$1-$(birth "$1")"
	: >"$users/$user"
	setsid sh "$0" --keep "$user" >/dev/null 2>&1 </dev/null 9>&- &
}

# keep waits for a command to end and then stops the engine, unless somebody
# else uses it.
keep() { # PID-BIRTH
	while lives "$1"; do sleep 0.2; done
	exec 9>$state/lock
	flock 9
	rm -f "$users/$1"
	for user in "$users"/*; do
		[ -e "$user" ] || continue
		lives "${user##*/}" && return
		rm -f "$user" # its keeper was killed
	done
	stop_engine
}

case "${1:-}" in
"")
	say "usage: with-docker.sh COMMAND [ARGUMENT...]"
	exit 2
	;;
--enter)
	mkdir -p $state
	exec 9>$state/lock
	flock 9
	enter "$2" "$3"
	exit 0
	;;
--keep)
	keep "$2"
	exit 0
	;;
esac

if [ -n "${DOCKER_HOST:-}" ]; then
	answers || say "the engine at DOCKER_HOST=$DOCKER_HOST does not answer"
elif ours_runs || ! answers; then
	if [ "$(id -u)" = 0 ]; then
		sh "$0" --enter $$ 0
	elif command -v sudo >/dev/null 2>&1; then
		sudo sh "$0" --enter $$ "$(id -u)"
	else
		say "no Docker engine answers here, and starting one needs root or sudo"
	fi
fi
answers || say "going on without a Docker engine: tests that need one will skip, or fail when CI=true"
exec "$@"
