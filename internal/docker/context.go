package docker

import (
	"errors"

	"github.com/bridgetoll/bridgetoll/internal/dockerhost"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// findHost finds the daemon as the docker command does.
func findHost(getenv func(string) string) (string, error) {
	host, err := dockerhost.Find(getenv)
	return host, refused(err, "")
}

// socketOf is the file of a daemon's Unix socket. Others are refused: containers
// must be on this machine, and whoever is root here can reach the socket.
func socketOf(host string) (string, error) {
	file, err := dockerhost.Socket(host)
	return file, refused(err, ", or --on lab")
}

// refused is the error as one of a path that cannot be built, with one more
// remedy.
func refused(err error, besides string) error {
	var e *dockerhost.Error
	if !errors.As(err, &e) {
		return err
	}
	return &path.UnsupportedError{Missing: e.Why, Remedy: e.Remedy + besides, Err: e.Err}
}
