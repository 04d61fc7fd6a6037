package collect

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// askSlirp4netns reads the forwards from slirp4netns's API. Without an API socket there are none.
func (r *relay) askSlirp4netns(until time.Time) {
	at := listensAt(r.PID)
	if len(at) == 0 {
		r.all = true
		return
	}
	var answer struct {
		Entries []struct {
			Proto string     `json:"proto"`
			Addr  netip.Addr `json:"host_addr"`
			Port  uint16     `json:"host_port"`
			Guest uint16     `json:"guest_port"`
		} `json:"entries"`
	}
	err := converse(r.PID, at[0], until, func(conn *net.UnixConn) error {
		if _, err := io.WriteString(conn, `{"execute":"list_hostfwd"}`); err != nil {
			return err
		}
		if err := conn.CloseWrite(); err != nil {
			return err
		}
		return json.NewDecoder(io.LimitReader(conn, relayAnswer)).Decode(&answer)
	})
	r.all = err == nil
	for _, e := range answer.Entries {
		r.forwards = append(r.forwards, forward{e.Proto, netip.AddrPortFrom(e.Addr, e.Port), e.Guest})
	}
}

func (r *relay) askRootlesskit(until time.Time) {
	var listed []struct {
		Spec struct {
			Proto  string     `json:"proto"`
			Parent netip.Addr `json:"parentIP"`
			Port   uint16     `json:"parentPort"`
			Child  uint16     `json:"childPort"`
		} `json:"spec"`
	}
	var info struct {
		Version string `json:"version"`
		Ports   struct {
			Driver string `json:"driver"`
		} `json:"portDriver"`
	}
	if r.get("/v1/ports", until, &listed) != nil || r.get("/v1/info", until, &info) != nil {
		return
	}
	r.all = true
	for _, x := range listed {
		proto := strings.TrimRight(x.Spec.Proto, "46")
		// Some versions listen on the wildcard of both families if that of one was requested.
		if x.Spec.Parent.IsUnspecified() {
			x.Spec.Parent = netip.Addr{}
		}
		r.forwards = append(r.forwards, forward{proto, netip.AddrPortFrom(x.Spec.Parent, x.Spec.Port),
			x.Spec.Child})
	}
	r.source = ports.SourceHidden
	// The port driver of version 3 keeps the client's address.
	major, _, _ := strings.Cut(info.Version, ".")
	if n, err := strconv.Atoi(major); err != nil || n >= 3 && info.Ports.Driver == "builtin" {
		r.source = ports.SourceIPv4
		if slices.Contains(arguments(r.PID), "--source-ip-transparent=false") {
			r.source = ports.SourceHidden
		}
	}
}

func (r *relay) get(what string, until time.Time, answer any) error {
	err := errors.New("it has no API socket")
	for _, at := range listensAt(r.PID) {
		if path.Base(at) != apiSocket {
			continue
		}
		err = converse(r.PID, at, until, func(conn *net.UnixConn) error {
			request, err := http.NewRequestWithContext(context.Background(), http.MethodGet,
				"http://rootlesskit"+what, http.NoBody)
			if err != nil {
				return err
			}
			request.Close = true
			if err := request.Write(conn); err != nil {
				return err
			}
			in := bufio.NewReader(io.LimitReader(conn, relayAnswer))
			got, err := http.ReadResponse(in, request)
			if err != nil {
				return err
			}
			defer got.Body.Close()
			if got.StatusCode != http.StatusOK {
				return errors.New(got.Status)
			}
			return json.NewDecoder(got.Body).Decode(answer)
		})
	}
	return err
}

const (
	apiSocket    = "api.sock"  // of rootlesskit, in its directory of state
	relayTimeout = time.Second // of one relay
	relaysTime   = 3 * time.Second
	relayAnswer  = 1 << 20 // bytes
)

// deadline returns the time by which the next relay must answer. It limits each relay to
// relayTimeout and all of them to relaysTime.
func (c *collector) deadline() time.Time {
	now := time.Now()
	if c.until.IsZero() {
		c.until = now.Add(relaysTime)
	}
	if one := now.Add(relayTimeout); one.Before(c.until) {
		return one
	}
	return c.until
}

func stateDir(sockets []string) string {
	for _, at := range sockets {
		if path.Base(at) == apiSocket {
			return path.Dir(at)
		}
	}
	return ""
}

// listensAt returns the paths of the Unix sockets on which a process listens, as the process sees
// them.
func listensAt(pid int) (files []string) {
	const accepts = 1 << 16 // SO_ACCEPTCON in net/unix/af_unix.c
	inodes, err := sock.Inodes(pid)
	if err != nil {
		return nil
	}
	fs, err := procfs.NewFS("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return nil
	}
	all, err := fs.NetUNIX()
	if err != nil {
		return nil
	}
	for _, row := range all.Rows {
		if inodes[uint32(row.Inode)] && row.Flags&accepts != 0 && path.IsAbs(row.Path) {
			files = append(files, row.Path)
		}
	}
	return files
}

// converse connects to a socket of the process, which may be in another mount namespace, and calls
// talk. It fails if another process listens there.
func converse(pid int, file string, until time.Time, talk func(*net.UnixConn) error) error {
	same := func(peer *unix.Ucred) bool { return int(peer.Pid) == pid }
	return converseWith(pid, file, until, same, talk)
}

// converseWith is converse with a process that right accepts.
func converseWith(pid int, file string, until time.Time, right func(*unix.Ucred) bool,
	talk func(*net.UnixConn) error) error {
	var all error
	for _, root := range []string{"/proc/" + strconv.Itoa(pid) + "/root", ""} {
		err := converseIn(root+file, until, right, talk)
		if err == nil {
			return nil
		}
		all = errors.Join(all, err)
	}
	return all
}

func converseIn(file string, until time.Time, right func(*unix.Ucred) bool,
	talk func(*net.UnixConn) error) error {
	fd, err := unix.Open(file, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", file, err)
	}
	defer func() { _ = unix.Close(fd) }()
	// a path may be longer than an address
	d := net.Dialer{Deadline: until}
	conn, err := d.DialContext(context.Background(), "unix", "/proc/self/fd/"+strconv.Itoa(fd))
	if err != nil {
		return err
	}
	defer conn.Close()
	u := conn.(*net.UnixConn)
	if err := u.SetDeadline(until); err != nil {
		return err
	}
	peer, err := sock.Peer(u)
	if err != nil {
		return err
	}
	if !right(peer) {
		return fmt.Errorf("another process, %d, listens at %s", peer.Pid, file)
	}
	return talk(u)
}
