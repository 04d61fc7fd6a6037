package rootless

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// HolderOf returns the PID and the name of the slirp4netns or pasta process that holds the tap
// device of a network namespace. namespace is a result of netns.ID. The caller needs permission to
// trace that process (ptrace).
func HolderOf(namespace string) (pid int, program string, err error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, "", err
	}
	for _, p := range all {
		program := programOf(p)
		if program == "" {
			continue
		}
		if ids, err := netns.Held(p.PID); err == nil && slices.Contains(ids, namespace) {
			return p.PID, program, nil
		}
	}
	return 0, "", &machine.UnsupportedError{
		Missing: "toll finds no slirp4netns or pasta process with the rootless network's tap device, or may not read it",
		Remedy:  "run toll as root, outside containers; other network drivers are not measured"}
}

// programOf returns the name of a slirp4netns or pasta process, or "" for other processes. pasta's
// process may have the name pasta.avx2 or passt.avx2.
func programOf(p procfs.Proc) string {
	name, err := p.Comm()
	switch {
	case err != nil:
	case name == Slirp4netns:
		return Slirp4netns
	case strings.HasPrefix(name, Pasta), strings.HasPrefix(name, "passt"):
		return Pasta
	}
	return ""
}

// Port is a TCP or UDP port published on the machine.
type Port struct {
	Host, Container uint16
	UDP             bool
}

// Protocol returns "tcp" or "udp".
func (p Port) Protocol() string {
	if p.UDP {
		return "udp"
	}
	return "tcp"
}

// Passt2023 is the version of pasta in Debian 12. Over the tap device it connects to the server
// only when the client has sent something. Where it splices sockets, it loses replies to datagrams
// unless the port has the same number in the container. Replies to a client with the machine's own
// address go to the gateway.
const Passt2023 = "git20230309"

// CheckAnswers returns a *machine.UnsupportedError if this pasta loses replies to datagrams. pasta
// is its name with the version; see Named.
func CheckAnswers(pasta string) error {
	if !strings.Contains(pasta, Passt2023) {
		return nil
	}
	return &machine.UnsupportedError{
		Missing: pasta +
			" loses replies to datagrams that are sent to the machine's own address, or to a port with another number in the container",
		Remedy: "pasta 2025_05; or --to loopback with one server in the lab"}
}

// PastaArgs returns the arguments with which Podman 5.4.2 (containers/common, libnetwork/pasta)
// starts pasta. namespace is the file of the container's network namespace. Unlike under Podman,
// pasta stays in the foreground, and stays root if root starts it.
func PastaArgs(namespace string, ports []Port) []string {
	published := func(udp bool) string {
		var all []string
		for _, p := range ports {
			if p.UDP == udp {
				all = append(all, strconv.Itoa(int(p.Host))+":"+strconv.Itoa(int(p.Container)))
			}
		}
		return cmp.Or(strings.Join(all, ","), "none")
	}
	return []string{"--config-net", "-t", published(false), "-u", published(true),
		"-T", "none", "-U", "none",
		"--no-map-gw", "--quiet", "--foreground", "--runas", "0", "--netns-only",
		"--netns", namespace}
}

// The device and the addresses that slirp4netns gives a container.
var (
	SlirpTap  = "tap0"
	SlirpAddr = netip.MustParsePrefix("10.0.2.100/24")
)

// SlirpArgs returns the arguments with which Podman 5.4.2 (libpod/networking_slirp4netns.go) starts
// slirp4netns over IPv4. namespace is the file of the container's network namespace, socket the
// path of the API's socket. slirp4netns writes to descriptor 3 when it is ready, and exits when its
// standard input is closed.
func SlirpArgs(namespace, socket string) []string {
	return []string{"--disable-host-loopback", "--mtu=" + strconv.Itoa(slirpMTU),
		"--enable-sandbox", "--enable-seccomp", "--configure", "--ready-fd=3", "--exit-fd=0",
		"--api-socket", socket, "--netns-type=path", namespace, SlirpTap}
}

// ErrHostLoopback refuses datagrams from a loopback address to ports that slirp4netns publishes.
// The server sees 10.0.2.2 as their source, and with --disable-host-loopback libslirp (4.7) drops
// packets to 10.0.2.2.
var ErrHostLoopback = &machine.UnsupportedError{
	Missing: "slirp4netns, as Podman and Docker start it (--disable-host-loopback), drops replies to datagrams from a loopback address",
	Remedy:  "--to address; or a load over TCP"}

const slirpMTU = 65520

const (
	answerTime = 5 * time.Second
	maxAnswer  = 64 << 10 // bytes
)

// SlirpPublish makes slirp4netns publish a port on all IPv4 addresses of the machine. It opens the
// API's socket in the calling thread's mount namespace.
func SlirpPublish(socket string, p Port) error {
	if err := slirpPublish(socket, p); err != nil {
		return fmt.Errorf("publish port %d by slirp4netns: %w", p.Host, err)
	}
	return nil
}

func slirpPublish(socket string, p Port) error {
	c, err := net.DialTimeout("unix", socket, answerTime)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	type arguments struct {
		Proto     string `json:"proto"`
		HostAddr  string `json:"host_addr"`
		HostPort  uint16 `json:"host_port"`
		GuestPort uint16 `json:"guest_port"`
	}
	err = json.NewEncoder(c).Encode(struct {
		Execute   string    `json:"execute"`
		Arguments arguments `json:"arguments"`
	}{"add_hostfwd", arguments{p.Protocol(), "0.0.0.0", p.Host, p.Container}})
	if err != nil {
		return err
	}
	if err := c.(*net.UnixConn).CloseWrite(); err != nil {
		return err
	}
	var answer struct {
		Error *struct {
			Desc string `json:"desc"`
		} `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(c, maxAnswer)).Decode(&answer); err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	if answer.Error != nil {
		return fmt.Errorf("it answers %q", answer.Error.Desc)
	}
	return nil
}
