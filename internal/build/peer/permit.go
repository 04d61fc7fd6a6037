package peer

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
)

// notPermitted reports whether only root could have done it, here or on the peer.
func notPermitted(err error) bool {
	var u *path.UnsupportedError
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.As(err, &u)
}

// bootID tells this machine's kernel from others; "" if it does not say.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
