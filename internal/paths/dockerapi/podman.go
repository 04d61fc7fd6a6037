package dockerapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// Podman has the facts of a daemon that is Podman's service, which also offers Docker's API.
type Podman struct {
	Host struct {
		Backend     string `json:"networkBackend"` // "netavark" or "cni"
		BackendInfo struct {
			Version string `json:"version"` // "netavark 1.14.0"; may be ""
		} `json:"networkBackendInfo"`
		// Rootless is the default network program of rootless containers that are not on a bridge:
		// "pasta", "slirp4netns", or "" before Podman 5.
		Rootless string `json:"rootlessNetworkCmd"`
		Pasta    tool   `json:"pasta"`
		Slirp    tool   `json:"slirp4netns"`
	} `json:"host"`
	Store struct {
		RunRoot string `json:"runRoot"` // directory
	} `json:"store"`
	Version struct {
		Version string `json:"Version"`
	} `json:"version"`
}

// tool is a program that Podman starts, with its answer to --version.
type tool struct {
	Version string `json:"version"`
}

// Backend returns the program that makes Podman's networks, such as "netavark 1.14.0".
func (p *Podman) Backend() string { return cmp.Or(p.Host.BackendInfo.Version, p.Host.Backend) }

// libpodAPI is the prefix of Podman's own API. 4.0.0 is the first version that reports the backend.
const libpodAPI = "/v4.0.0/libpod"

// defaultPodman is where root's Podman listens by default.
const defaultPodman = "unix:///run/podman/podman.sock"

// FindPodman returns the address of this user's Podman service: CONTAINER_HOST, or where systemd's
// podman.socket listens.
func FindPodman(getenv func(string) string) string {
	if h := getenv("CONTAINER_HOST"); h != "" {
		return h
	}
	if os.Geteuid() == 0 {
		return defaultPodman
	}
	dir := cmp.Or(getenv("XDG_RUNTIME_DIR"), "/run/user/"+strconv.Itoa(os.Geteuid()))
	return "unix://" + filepath.Join(dir, "podman", "podman.sock")
}

// ConnectPodman is like Connect for this environment's Podman service. It returns a
// *machine.UnsupportedError if another engine answers there.
func ConnectPodman(ctx context.Context, dir string) (*Daemon, error) {
	host := FindPodman(os.Getenv)
	d, err := connect(ctx, podmanService, host, dir, defaultAnswer)
	if err != nil || d.Podman != nil {
		return d, err
	}
	return nil, errors.Join(&machine.UnsupportedError{
		Missing: d.Version() + " answers at " + host + ", not Podman", Remedy: "--on docker"},
		d.Close())
}

// askPodman returns Podman's facts, or nil if the daemon is not Podman's service.
func (d *Daemon) askPodman(ctx context.Context) (*Podman, error) {
	out := &Podman{}
	found, err := d.libpod(ctx, "/info", out)
	if odd := new(json.UnmarshalTypeError); errors.As(err, &odd) {
		return nil, nil
	}
	if err != nil || !found || out.Version.Version == "" {
		return nil, err
	}
	return out, nil
}

// Interface returns the name of the bridge of one of Podman's networks. Podman makes the bridge
// when the network's first container starts.
func (d *Daemon) Interface(ctx context.Context, network string) (device string, err error) {
	var out struct {
		Interface string `json:"network_interface"`
	}
	found, err := d.libpod(ctx, "/networks/"+network+"/json", &out)
	if err == nil && !found {
		err = errors.New("it does not exist")
	}
	if err != nil {
		return "", fmt.Errorf("read network %s: %w", network, err)
	}
	return out.Interface, nil
}

// libpod makes a request of Podman's own API. found is false if the daemon does not know the thing.
func (d *Daemon) libpod(ctx context.Context, what string, out any) (found bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://podman"+libpodAPI+what, nil)
	if err != nil {
		return false, err
	}
	answer, err := d.http.Do(r)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return false, nil
	}
	const most = 4 << 20 // bytes
	return true, json.NewDecoder(io.LimitReader(answer.Body, most)).Decode(out)
}
