package programs

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Postgres is one PostgreSQL server.
type Postgres struct {
	// Dir holds the data folder, which initdb fills if it is not there yet.
	Dir string
	// Listen is the address, host:port.
	Listen string

	_ struct{} // named fields only
}

// PostgresUser is the superuser of the servers described here. They trust every
// connection: they listen on a loopback address only.
const PostgresUser = "postgres"

// FindPostgres gives the folder of postgres and initdb: the newest version's
// where several are installed, and otherwise that of the search path.
func FindPostgres() (string, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", fmt.Errorf("postgres: %w", err)
	}
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))) // 0 for what is no number
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	for _, dir := range dirs {
		if _, err := exec.LookPath(filepath.Join(dir, "postgres")); err == nil {
			return dir, nil
		}
	}
	path, err := exec.LookPath("postgres")
	if err != nil {
		return "", fmt.Errorf("postgres: %w (%w)", ErrMissing, err)
	}
	return filepath.Dir(path), nil
}

// Command describes the server. Its Before is initdb, which the caller leaves
// out where the data folder ([Postgres.Data]) is there already. It fails with
// [ErrMissing] where there is no PostgreSQL.
func (p Postgres) Command() (Command, error) {
	bin, err := FindPostgres()
	if err != nil {
		return Command{}, err
	}
	host, port, err := net.SplitHostPort(p.Listen)
	if err != nil {
		return Command{}, fmt.Errorf("postgres: address: %w", err)
	}
	initdb := &Command{
		Path: filepath.Join(bin, "initdb"),
		Args: []string{"-D", p.Data(), "-U", PostgresUser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"},
		User: PostgresUser,
	}
	return Command{
		Path: filepath.Join(bin, "postgres"),
		Args: []string{
			"-D", p.Data(), "-h", host, "-p", port,
			"-c", "unix_socket_directories=", // none: fixed paths collide
			"-c", "max_connections=200",
			"-c", "shared_buffers=16MB",
			"-c", "dynamic_shared_memory_type=mmap", // in the data folder, and gone with it
			"-c", "log_min_messages=fatal",
		},
		Dirs:   []string{p.Dir},
		Before: initdb,
		User:   PostgresUser,
		Stop:   syscall.SIGINT, // fast: ends the sessions, writes a checkpoint
		Ready:  postgresReady,
	}, nil
}

// Data is the folder that initdb fills.
func (p Postgres) Data() string { return filepath.Join(p.Dir, "data") }

// postgresReady begins a session: a server that starts up or recovers answers
// with an error. Source: "Message Flow" and "Message Formats" of PostgreSQL's
// documentation; 196608 is version 3.0 of the protocol.
func postgresReady(ctx context.Context, dial Dial) error {
	return talk(ctx, dial, func(conn net.Conn) error {
		words := "user\x00" + PostgresUser + "\x00database\x00postgres\x00\x00"
		hello := binary.BigEndian.AppendUint32(nil, uint32(8+len(words)))
		hello = binary.BigEndian.AppendUint32(hello, 196608)
		if _, err := conn.Write(append(hello, words...)); err != nil {
			return err
		}
		kind, err := bufio.NewReader(conn).ReadByte()
		if err != nil {
			return err
		}
		if kind != 'R' { // authentication: there is none to do
			return fmt.Errorf("postgres answers with a message %q", kind)
		}
		// Goodbye; whether it arrives does not matter.
		_, _ = conn.Write([]byte{'X', 0, 0, 0, 4})
		return nil
	})
}
