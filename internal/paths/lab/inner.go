package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/lab/relay"
	"github.com/bridgetoll/bridgetoll/internal/paths/ovs"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
)

const (
	proxyArg = "proxy"
	hostsArg = "with-hosts"
	kitArg   = "rootless"
)

// Inner runs the lab's helper process that args name, such as its docker-proxy. ours is false if
// args do not name one.
func Inner(args []string) (ours bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	switch args[0] {
	case proxyArg:
		const ready = 3
		return true, relay.Run(untilEOF(os.Stdin), args[1:], os.NewFile(ready, "ready"))
	case ovs.Arg:
		if err := apart(args[0]); err != nil {
			return true, err
		}
		return true, ovs.Main(os.Stdin, os.Stdout)
	case hostsArg:
		if err := apart(args[0]); err != nil {
			return true, err
		}
		return true, withHosts(args[1:])
	case kitArg:
		if err := apart(args[0]); err != nil {
			return true, err
		}
		return true, rootless.Main(args[1:])
	}
	return false, nil
}

// apart returns an error unless this process is the first one of a PID namespace that toll made:
// only then may it change mounts.
func apart(arg string) error {
	if os.Getpid() != 1 || !slices.ContainsFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, runMark)
	}) {
		return fmt.Errorf("only toll itself may start %s", arg)
	}
	return nil
}

// untilEOF returns a context that is cancelled at the end of r, so that a proxy does not outlive
// toll.
func untilEOF(r io.Reader) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, r)
		cancel()
	}()
	return ctx
}

const hostsFile = "/etc/hosts"

func withHosts(args []string) error {
	if len(args) < 2 {
		return errors.New("with-hosts: no lines or no program")
	}
	if err := addHosts(args[0]); err != nil {
		return fmt.Errorf("add to %s: %w", hostsFile, err)
	}
	return syscall.Exec(self, append([]string{os.Args[0]}, args[1:]...), os.Environ())
}

func addHosts(lines string) error {
	const scratch, file = "/tmp", "/tmp/hosts"
	old, err := os.ReadFile(hostsFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("toll", scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	if err := os.WriteFile(file, append(old, lines...), 0o644); err != nil {
		return err
	}
	if err := unix.Mount(file, hostsFile, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	return unix.Unmount(scratch, unix.MNT_DETACH)
}
