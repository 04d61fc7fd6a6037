// Package ipvs sets up services of the kernel's load balancer (IP Virtual Server) and reads their
// counters, in the calling thread's network namespace. Call it inside netns.NS.Do.
//
// The sum over all services of a namespace is exact. The kernel updates the counters of single
// services with a delay.
//
// github.com/moby/ipvs sends the same messages, but runs modprobe and logs to standard error.
package ipvs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// linux/ip_vs.h
const (
	family  = "IPVS"
	version = 1

	cmdNewService = 1
	cmdNewServer  = 5

	attrService = 1
	attrServer  = 2

	serviceFamily    = 1
	serviceMark      = 5
	serviceScheduler = 6
	serviceFlags     = 7
	serviceTimeout   = 8
	serviceNetmask   = 9

	serverAddress = 1
	serverPort    = 2
	serverForward = 3
	serverWeight  = 4
	serverUpper   = 5
	serverLower   = 6
)

// masquerade forwards packets to the server's address; answers come from the service's address.
const (
	roundRobin = "rr"
	masquerade = 0
)

// Add creates a service that forwards packets with the firewall mark to the server, without
// changing the destination port.
func Add(mark uint32, server netip.Addr) error {
	f, err := netlink.GenlFamilyGet(family)
	if err != nil {
		return fmt.Errorf("find IPVS: %w", err)
	}
	service := nl.NewRtAttr(attrService, nil)
	service.AddRtAttr(serviceFamily, nl.Uint16Attr(unix.AF_INET))
	service.AddRtAttr(serviceMark, nl.Uint32Attr(mark))
	service.AddRtAttr(serviceScheduler, nl.ZeroTerminated(roundRobin))
	service.AddRtAttr(serviceFlags, binary.NativeEndian.AppendUint32(nl.Uint32Attr(0), ^uint32(0)))
	service.AddRtAttr(serviceTimeout, nl.Uint32Attr(0))
	service.AddRtAttr(serviceNetmask, nl.Uint32Attr(0))
	if err := ask(f, cmdNewService, service); err != nil {
		return fmt.Errorf("add IPVS service of mark %d: %w", mark, err)
	}
	to := nl.NewRtAttr(attrServer, nil)
	to.AddRtAttr(serverAddress, server.AsSlice())
	to.AddRtAttr(serverPort, []byte{0, 0})
	to.AddRtAttr(serverForward, nl.Uint32Attr(masquerade))
	to.AddRtAttr(serverWeight, nl.Uint32Attr(1))
	to.AddRtAttr(serverUpper, nl.Uint32Attr(0))
	to.AddRtAttr(serverLower, nl.Uint32Attr(0))
	if err := ask(f, cmdNewServer, service, to); err != nil {
		return fmt.Errorf("add server %s to IPVS service of mark %d: %w", server, mark, err)
	}
	return nil
}

func ask(f *netlink.GenlFamily, command uint8, attrs ...*nl.RtAttr) error {
	req := nl.NewNetlinkRequest(int(f.ID), unix.NLM_F_ACK)
	req.AddData(&nl.Genlmsg{Command: command, Version: version})
	for _, a := range attrs {
		req.AddData(a)
	}
	_, err := req.Execute(unix.NETLINK_GENERIC, 0)
	return err
}

// Unsupported reports whether err means that the kernel lacks IPVS or its scheduler.
func Unsupported(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) ||
		errors.Is(err, unix.EPROTONOSUPPORT)
}

// Count is the traffic of services in bytes of IP packets: In to servers, Out back.
type Count struct {
	InBytes, InPackets   uint64
	OutBytes, OutPackets uint64
}

// The counts in /proc/net/ip_vs_stats and those by netlink are up to two seconds old; these are
// not.
const statistics = "/proc/thread-self/net/ip_vs_stats_percpu"

// Stats returns the count of all services of the namespace.
func Stats() (Count, error) {
	f, err := os.Open(statistics)
	if err != nil {
		return Count{}, fmt.Errorf("read what IPVS carried: %w", err)
	}
	defer f.Close()
	return parse(f)
}

var errNone = errors.New("no statistics")

// Each line has the CPU, connections, packets in and out, bytes in and out. The kernel's sum, with
// ~ as the CPU, follows.
func parse(r io.Reader) (sum Count, err error) {
	const columns = 6
	cpus := 0
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) == 0 {
			continue
		}
		if f[0] == "~" {
			break
		}
		var n [columns]uint64
		if len(f) != columns || f[0] == "CPU" {
			continue
		}
		for i := range f {
			if n[i], err = strconv.ParseUint(f[i], 16, 64); err != nil {
				return Count{}, fmt.Errorf("read what IPVS carried: %w", err)
			}
		}
		cpus++
		sum.InPackets += n[2]
		sum.OutPackets += n[3]
		sum.InBytes += n[4]
		sum.OutBytes += n[5]
	}
	if err := sc.Err(); err != nil {
		return Count{}, fmt.Errorf("read what IPVS carried: %w", err)
	}
	if cpus == 0 {
		return Count{}, fmt.Errorf("read what IPVS carried: %w", errNone)
	}
	return sum, nil
}
