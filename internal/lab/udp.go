package lab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// dport and sport match a port of the protocol that the daemon's ports are for.

func (d daemon) dport(number uint16) nft.Match {
	if d.udp {
		return nft.UDPDport(number)
	}
	return nft.TCPDport(number)
}

func (d daemon) sport(number uint16) nft.Match {
	if d.udp {
		return nft.UDPSport(number)
	}
	return nft.TCPSport(number)
}

// proxyIOHop is what the proxy read and wrote by itself: read(2) and write(2)
// of /proc/PID/io. docker-proxy (udp_proxy_linux.go, 20.10 to 28.5.2) writes a
// client's datagrams to the server's socket by write(2) and reads the server's
// by read(2), and talks to clients by recvmsg(2) and sendmsg(2) or their like,
// which are not counted there. So every byte that came to the server through it
// is counted once, also if it was lost later, and it wrote none that it had not
// got from a client. UDP sockets have no byte counters of their own.
func (s *site) proxyIOHop(pid int, name string) path.Hop {
	return path.Hop{Kind: mode.HopProxy, Name: name, Where: s.a.name + ", process " + strconv.Itoa(pid),
		Read: func() (sample.Counters, error) { return processIO(strconv.Itoa(pid)) }}
}

// processIO reads what a process has written, as forward, and read.
func processIO(pid string) (c sample.Counters, err error) {
	f, err := os.Open(filepath.Join("/proc", pid, "io"))
	if err != nil {
		return c, fmt.Errorf("read what process %s moved: %w", pid, err)
	}
	defer f.Close()
	found := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		key, value, _ := strings.Cut(sc.Text(), ": ")
		to := map[string]*uint64{"wchar": &c.ForwardBytes, "rchar": &c.BackwardBytes}[key]
		if to == nil {
			continue
		}
		if *to, err = strconv.ParseUint(value, 10, 64); err != nil {
			return c, fmt.Errorf("read what process %s moved: %w", pid, err)
		}
		found++
	}
	if found != 2 {
		return c, fmt.Errorf("read what process %s moved: %w", pid, errNoCounts)
	}
	return c, nil
}

var errNoCounts = errors.New("no such counts")

// tryProcessIO finds out whether a proxy's datagrams can be witnessed.
func tryProcessIO() error {
	_, err := processIO("self")
	if err == nil {
		return nil
	}
	return &path.UnsupportedError{
		Missing: "the bytes of a proxy of UDP cannot be read without /proc/PID/io (CONFIG_TASK_IO_ACCOUNTING)",
		Remedy:  "a kernel that has it",
		Err:     err,
	}
}

// firstPktinfo is the Docker Engine whose docker-proxy first answered UDP from
// the address that the client had dialled (moby/moby#48571). The ones before
// let the route choose, which for a container on the machine is the bridge's
// address: its socket does not take that answer.
const firstPktinfo = 28

var majorVersion = regexp.MustCompile(` (\d+)\.`)

// tryUDPProxy refuses an old docker-proxy where its answers would not arrive.
func (l *Lab) tryUDPProxy() error {
	file, name := l.findProxy()
	if file == "" {
		return nil
	}
	if m := majorVersion.FindStringSubmatch(name); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n >= firstPktinfo {
			return nil
		}
	}
	return &path.UnsupportedError{
		Missing: fmt.Sprintf("%s (%s) answers a container's datagrams from another address than the one that was dialled, as all did before Docker Engine %d", name, file, firstPktinfo),
		Remedy:  "--proxy own, or --proxy with the docker-proxy of a later Docker Engine",
	}
}
