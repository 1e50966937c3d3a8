package process

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// electionPort is ZooKeeper's second port.
const electionPort = "election"

// The versions of the message that begins a connection to an election port.
// Source: QuorumCnxManager.PROTOCOL_VERSION_V1 and V2.
const (
	electionV1 = -65536
	electionV2 = -65535
)

// maxElectionAddress is the longest text of addresses that ZooKeeper takes.
// Source: QuorumCnxManager.InitialMessage.
const maxElectionAddress = 512

// isElection says whether the junction leads to an election port.
func (j *junction) isElection() bool { return strings.HasSuffix(j.endpoint, ":"+electionPort) }

// electionHello reads the first message of a ZooKeeper server to another's
// election port:
//
//	8 bytes version, 8 bytes number of the server, 4 bytes length, addresses
//
// It names the caller, whose socket is often gone by now: a server with a lower
// number only says hello and hangs up, to be dialled back. The address for that
// is the caller's own, which would lead past every proxy, so the message that is
// to be sent on has the caller's junction instead.
func (j *junction) electionHello(c net.Conn) (hello []byte, caller string, err error) {
	if err := c.SetReadDeadline(time.Now().Add(waitBound)); err != nil {
		return nil, "", err
	}
	head := make([]byte, 20)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, "", err
	}
	version, id := int64(binary.BigEndian.Uint64(head)), binary.BigEndian.Uint64(head[8:])
	if version != electionV1 && version != electionV2 || id < 1 || id > uint64(len(j.w.nodeNames)) {
		return nil, "", fmt.Errorf("server %d says hello in version %d", id, version)
	}
	size := binary.BigEndian.Uint32(head[16:])
	if size > maxElectionAddress {
		return nil, "", fmt.Errorf("an election address of %d bytes", size)
	}
	if _, err := io.CopyN(io.Discard, c, int64(size)); err != nil {
		return nil, "", err
	}
	caller = j.w.nodeNames[id-1]
	address := j.w.junctions[endpointOf(caller, electionPort)].addr()
	binary.BigEndian.PutUint32(head[16:], uint32(len(address)))
	return append(head, address...), caller, c.SetReadDeadline(time.Time{})
}
