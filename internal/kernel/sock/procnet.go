package sock

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// ListenersOf lists the sockets that listen in the network namespace of
// process pid, from its /proc/PID/net: that needs no privilege and does not
// enter the namespace. Whether an IPv6 wildcard takes IPv4 is not told there.
func ListenersOf(pid int) ([]Socket, error) {
	var out []Socket
	for _, name := range []string{"tcp", "tcp6", "udp", "udp6"} {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/net/" + name)
		if os.IsNotExist(err) && strings.HasSuffix(name, "6") {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("read sockets: %w", err)
		}
		for _, s := range parseProcNet(string(b), strings.TrimSuffix(name, "6")) {
			if s.Listening {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// parseProcNet reads /proc/net/tcp, tcp6, udp or udp6. Lines that are cut off
// are left out.
func parseProcNet(text, proto string) []Socket {
	var out []Socket
	for line := range strings.Lines(text) {
		const local, remote, state, uid, inode = 1, 2, 3, 7, 9
		f := strings.Fields(line)
		if len(f) <= inode {
			continue
		}
		s := Socket{Proto: proto}
		var okL, okR bool
		s.Local, okL = hexAddr(f[local])
		s.Remote, okR = hexAddr(f[remote])
		st, errS := strconv.ParseUint(f[state], 16, 8)
		id, errI := strconv.ParseUint(f[inode], 10, 32)
		user, errU := strconv.ParseUint(f[uid], 10, 32)
		if !okL || !okR || errS != nil || errI != nil || errU != nil {
			continue
		}
		s.Inode, s.UID = uint32(id), uint32(user)
		s.Listening = proto == "tcp" && st == listen || proto == "udp" && st == closed
		out = append(out, s)
	}
	return out
}

// hexAddr reads 0100007F:1F90: words of the machine's byte order, as the kernel
// prints them.
func hexAddr(s string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	p, errP := strconv.ParseUint(port, 16, 16)
	if err != nil || errP != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a, uint16(p)), ok
}
