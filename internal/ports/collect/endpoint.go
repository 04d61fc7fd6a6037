package collect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// defaultHost is where Docker's socket is if nobody says otherwise.
const defaultHost = "unix:///var/run/docker.sock"

// dockerHost finds the engine as the docker command does: DOCKER_HOST, then the
// context of DOCKER_CONTEXT, then that of the configuration file. Only an
// engine of this machine can say anything about its ports.
func dockerHost() (host string, err error) {
	host = os.Getenv("DOCKER_HOST")
	if host == "" {
		if host, err = contextHost(os.Getenv("DOCKER_CONTEXT")); err != nil {
			return "", err
		}
	}
	if !strings.HasPrefix(host, "unix://") {
		return "", fmt.Errorf("docker's engine is not on this machine's socket but at %s", host)
	}
	return host, nil
}

// contextHost is the engine of a context; without a name, of the current one.
func contextHost(name string) (string, error) {
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return defaultHost, nil // a user without a home has no configuration
		}
		dir = filepath.Join(home, ".docker")
	}
	if name == "" {
		var config struct{ CurrentContext string }
		if err := readJSON(filepath.Join(dir, "config.json"), &config); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			return "", err
		}
		name = config.CurrentContext
	}
	if name == "" || name == "default" {
		return defaultHost, nil
	}
	sum := sha256.Sum256([]byte(name))
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	if err := readJSON(filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]), "meta.json"), &meta); err != nil {
		return "", fmt.Errorf("read docker context %s: %w", name, err)
	}
	return meta.Endpoints["docker"].Host, nil
}

func readJSON(file string, v any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
