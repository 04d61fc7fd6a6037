package dockerapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
)

// DefaultHost is where a daemon listens by default.
const DefaultHost = "unix:///var/run/docker.sock"

// HostError reports why no usable daemon was found, with a remedy.
type HostError struct {
	Why, Remedy string
	Err         error // may be nil
}

func (e *HostError) Error() string {
	if e.Err != nil {
		return e.Why + ": " + e.Err.Error()
	}
	return e.Why
}

// Unwrap returns the cause.
func (e *HostError) Unwrap() error { return e.Err }

const useDefault = "docker context use default, or DOCKER_HOST=" + DefaultHost

// FindHost returns the daemon's address as the docker command determines it: from DOCKER_HOST, the
// context of DOCKER_CONTEXT, or the configuration file's context. It ignores an unreadable
// configuration, like docker, which warns. It returns a *HostError if the context does not exist.
func FindHost(getenv func(string) string) (string, error) {
	if h := getenv("DOCKER_HOST"); h != "" {
		return h, nil
	}
	dir := getenv("DOCKER_CONFIG")
	if home := getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".docker")
	}
	name := getenv("DOCKER_CONTEXT")
	if name == "" && dir != "" {
		var config struct {
			CurrentContext string `json:"currentContext"`
		}
		if readJSON(filepath.Join(dir, "config.json"), &config) == nil {
			name = config.CurrentContext
		}
	}
	if name == "" || name == "default" {
		return DefaultHost, nil
	}
	return contextHost(dir, name)
}

func contextHost(dir, name string) (string, error) {
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	sum := sha256.Sum256([]byte(name))
	err := readJSON(filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]), "meta.json"),
		&meta)
	host := meta.Endpoints["docker"].Host
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &HostError{fmt.Sprintf("there is no docker context %q in %s", name, dir),
			useDefault, err}
	case err != nil:
		return "", &HostError{fmt.Sprintf("the docker context %q cannot be read", name), useDefault,
			err}
	case host == "":
		return "", &HostError{fmt.Sprintf("the docker context %q has no address of a daemon", name),
			useDefault, nil}
	}
	return host, nil
}

func readJSON(file string, v any) error {
	const most = 1 << 20
	b, err := exchange.ReadFile(file, most)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return nil
}

// Socket returns the file of a daemon's Unix socket. It returns a *HostError for any other address,
// because such a daemon may be on another machine.
func Socket(host string) (string, error) { return dockerService.socket(host) }

func (of service) socket(host string) (string, error) {
	u, err := url.Parse(host)
	if err != nil {
		return "", &HostError{fmt.Sprintf("the %s's address %q is not a URL", of.what, host),
			of.given, err}
	}
	if u.Scheme != "unix" {
		return "",
			&HostError{
				fmt.Sprintf(
					"the %s at %s has no Unix socket, so it may be on another machine, and toll measures on this one", of.what, host),
				"run toll on its machine with " + of.given, nil}
	}
	return u.Path, nil
}
