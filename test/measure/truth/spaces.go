package truth

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
)

// spaces has network namespaces and what runs in them. The caller closes it.
type spaces struct{ closers []func() error }

// namespace returns a namespace, with its loopback device up, in which a process runs, so that toll
// finds it.
func (s *spaces) namespace() (*netns.NS, error) {
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, ns.Close)
	if err := inside(ns, "ip", "link", "set", "lo", "up"); err != nil {
		return nil, err
	}
	return ns, s.start(ns, exec.Command("sleep", "infinity"))
}

// start starts a process, which close ends.
func (s *spaces) start(ns *netns.NS, cmd *exec.Cmd) error {
	if err := ns.Start(cmd); err != nil {
		return err
	}
	s.closers = append(s.closers, func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait()
		return err
	})
	return nil
}

func (s *spaces) close() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// inside runs a program in a namespace.
func inside(ns *netns.NS, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := ns.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err,
			strings.TrimSpace(said.String()))
	}
	return nil
}
