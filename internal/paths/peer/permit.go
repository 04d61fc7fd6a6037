package peer

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// notPermitted reports whether err means that the action needs root, here or on the peer.
func notPermitted(err error) bool {
	var u *machine.UnsupportedError
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.As(err, &u)
}
