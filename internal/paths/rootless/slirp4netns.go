package rootless

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

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
