package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/bridgetoll/bridgetoll/internal/path"
)

// defaultHost is where a daemon listens if nobody says otherwise.
const defaultHost = "unix:///var/run/docker.sock"

// findHost finds the daemon as the docker command does: DOCKER_HOST, then
// DOCKER_CONTEXT, then the context of the configuration file.
func findHost(getenv func(string) string) (string, error) {
	if h := getenv("DOCKER_HOST"); h != "" {
		return h, nil
	}
	dir := getenv("DOCKER_CONFIG")
	if dir == "" {
		dir = filepath.Join(getenv("HOME"), ".docker")
	}
	name := getenv("DOCKER_CONTEXT")
	if name == "" {
		var config struct {
			CurrentContext string `json:"currentContext"`
		}
		if err := readJSON(filepath.Join(dir, "config.json"), &config); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		name = config.CurrentContext
	}
	if name == "" || name == "default" {
		return defaultHost, nil
	}
	return contextHost(dir, name)
}

// contextHost is the daemon of a docker context.
func contextHost(dir, name string) (string, error) {
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	sum := sha256.Sum256([]byte(name))
	err := readJSON(filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]), "meta.json"), &meta)
	host := meta.Endpoints["docker"].Host
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &path.UnsupportedError{Missing: fmt.Sprintf("there is no docker context %q in %s", name, dir),
			Remedy: "docker context use default, or DOCKER_HOST=" + defaultHost, Err: err}
	case err != nil:
		return "", err
	case host == "":
		return "", &path.UnsupportedError{Missing: fmt.Sprintf("the docker context %q names no daemon", name),
			Remedy: "docker context use default, or DOCKER_HOST=" + defaultHost}
	}
	return host, nil
}

func readJSON(file string, v any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return nil
}

// socketOf is the file of a daemon's Unix socket. Others are refused: containers
// must be on this machine, and whoever is root here can reach the socket.
func socketOf(host string) (string, error) {
	u, err := url.Parse(host)
	if err != nil {
		return "", &path.UnsupportedError{Missing: fmt.Sprintf("the daemon's address %q cannot be understood", host),
			Remedy: "DOCKER_HOST=" + defaultHost, Err: err}
	}
	if u.Scheme != "unix" {
		return "", &path.UnsupportedError{
			Missing: fmt.Sprintf("the Docker daemon at %s is not reached by a Unix socket: it may be on another machine, and counters are read on this one", host),
			Remedy:  "run toll on the daemon's machine with DOCKER_HOST=" + defaultHost + ", or --on lab"}
	}
	return u.Path, nil
}
