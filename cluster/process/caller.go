package process

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// callerAmong names the process, of those given, that holds the other end of a
// connection between two sockets of this machine; empty for none of them. The
// kernel lists sockets with their addresses and inodes, and a process's open
// files name the inodes of its sockets.
func callerAmong(conn net.Conn, pids map[string]int) string {
	from, errFrom := netip.ParseAddrPort(conn.RemoteAddr().String())
	to, errTo := netip.ParseAddrPort(conn.LocalAddr().String())
	if errFrom != nil || errTo != nil {
		return ""
	}
	inode := inodeOf(from, to)
	if inode == "" {
		return ""
	}
	for name, pid := range pids {
		if holds(pid, "socket:["+inode+"]") {
			return name
		}
	}
	return ""
}

// inodeOf is the inode of the socket with a local and a remote address.
func inodeOf(from, to netip.AddrPort) string {
	for table, write := range map[string]func(netip.AddrPort) string{
		"/proc/net/tcp": hex4, "/proc/net/tcp6": hex4in6,
	} {
		if inode := inodeIn(table, write(from), write(to)); inode != "" {
			return inode
		}
	}
	return ""
}

func inodeIn(table, local, remote string) string {
	f, err := os.Open(table)
	if err != nil {
		return "" // no such protocol
	}
	defer func() { _ = f.Close() }() // only read from
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		const localAt, remoteAt, inodeAt = 1, 2, 9
		fields := strings.Fields(lines.Text())
		if len(fields) > inodeAt && fields[localAt] == local && fields[remoteAt] == remote {
			return fields[inodeAt]
		}
	}
	return ""
}

// hex4 writes an address as the kernel's tables do: in the byte order of the
// machine, which every platform of ours has little-endian.
func hex4(a netip.AddrPort) string {
	ip := a.Addr().Unmap().As4()
	return fmt.Sprintf("%08X:%04X", binary.LittleEndian.Uint32(ip[:]), a.Port())
}

// hex4in6 writes it as an IPv4 address of an IPv6 socket, which is what Java
// opens.
func hex4in6(a netip.AddrPort) string {
	return "0000000000000000FFFF0000" + hex4(a)
}

// holds says whether a process has a file open under a name.
func holds(pid int, name string) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	files, err := os.ReadDir(dir)
	if err != nil {
		return false // it has ended
	}
	for _, file := range files {
		if target, err := os.Readlink(dir + "/" + file.Name()); err == nil && target == name {
			return true
		}
	}
	return false
}
