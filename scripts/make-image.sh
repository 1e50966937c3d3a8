#!/bin/sh
# Builds the image for runs in containers from what this machine has installed,
# with no registry: redis-server (also under the name redis-sentinel),
# redis-cli, the libraries that they load, libfaketime, and a shell.
#
#   scripts/make-image.sh [NAME]      # holdfast/redis:local unless named
#
# The image is put together by hand and given to "docker load": one layer with
# sorted names and no times, so the same packages always give the same image id,
# and an image that is already there costs a second. It carries the versions as
# labels. Nothing but the image stays behind.
set -eu

say() { echo "make-image: $*" >&2; }
fail() {
	say "$*"
	exit 1
}

name=${1:-holdfast/redis:local}

[ "$(uname -s)" = Linux ] || fail "needs Linux: the image is made of this machine's own programs"
docker version --format '{{.Server.Version}}' >/dev/null 2>&1 ||
	fail "no Docker engine answers: start one, or try scripts/with-docker.sh $0 ${1:-}"

find_faketime() {
	ls /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1 \
		/usr/lib64/faketime/libfaketime.so.1 /usr/local/lib/faketime/libfaketime.so.1 2>/dev/null | head -n 1
}
server=$(command -v redis-server) || fail "redis-server is missing: make install-test-tools"
cli=$(command -v redis-cli) || fail "redis-cli is missing: make install-test-tools"
faketime=$(find_faketime)
[ -n "$faketime" ] || say "libfaketime is missing: clocks of nodes in this image cannot jump (make install-test-tools)"

case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) arch=$(uname -m) ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
root=$work/root
mkdir -p "$root/bin" "$root/tmp" "$root/etc"
chmod 1777 "$root/tmp"

# with_libraries copies the libraries that a file loads to where it looks for
# them: the real file, under the name that the loader asks for.
with_libraries() {
	ldd "$1" 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) .*/\1/p' | while read -r lib; do
		[ -e "$root$lib" ] && continue
		mkdir -p "$root$(dirname "$lib")"
		cp -L "$lib" "$root$lib"
	done
}

add() { # FILE PATH-IN-IMAGE
	mkdir -p "$root$(dirname "$2")"
	cp -L "$1" "$root$2"
	with_libraries "$1"
}

add "$server" /bin/redis-server
ln -s redis-server "$root/bin/redis-sentinel"
add "$cli" /bin/redis-cli
add "$(readlink -f /bin/sh)" /bin/sh
for tool in cat sleep; do add "$(command -v $tool)" /bin/$tool; done
[ -z "$faketime" ] || add "$faketime" "$faketime"

redis=$("$server" --version | sed 's/.* v=\([^ ]*\).*/\1/')

# -n and the fixed times keep out what differs between two machines with the
# same packages.
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w \
	--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime -C "$root" -cf "$work/layer.tar" .
layer=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)

cat >"$work/config.json" <<JSON
{"architecture":"$arch","os":"linux","created":"1970-01-01T00:00:00Z",
"config":{"Env":["PATH=/bin"],"Cmd":["redis-server"],"WorkingDir":"/",
"Labels":{"holdfast.image":"redis","org.opencontainers.image.title":"redis-server for holdfast, from this machine's packages",
"org.opencontainers.image.version":"$redis","holdfast.faketime":"$faketime"}},
"rootfs":{"type":"layers","diff_ids":["sha256:$layer"]},
"history":[{"created":"1970-01-01T00:00:00Z","created_by":"scripts/make-image.sh"}]}
JSON
id=$(sha256sum "$work/config.json" | cut -d' ' -f1)
printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]\n' "$name" >"$work/manifest.json"

if [ "$(docker image inspect --format '{{.Id}}' "$name" 2>/dev/null)" = "sha256:$id" ]; then
	say "$name is up to date (redis $redis)"
	exit 0
fi
tar -C "$work" -cf "$work/image.tar" manifest.json config.json layer.tar
docker load -q -i "$work/image.tar" >/dev/null
say "$name: redis $redis, $(($(stat -c %s "$work/layer.tar") / 1000000)) MB${faketime:+, with libfaketime}, sha256:$(echo "$id" | cut -c1-12)"
