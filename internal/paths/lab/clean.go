package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const runMark = "BRIDGETOLL_RUN="

func mark() string { return runMark + journal.Mark() }

// Leftover is a process that outlived the toll that started it.
type Leftover struct {
	PID     int
	Command string
}

// Clean kills the processes that labs of ended tolls left behind, and returns them. It finds only
// processes that this user may see. Usually there are none, because the kernel kills them together
// with their parent.
func Clean() ([]Leftover, error) {
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	var (
		out  []Leftover
		errs []error
	)
	for _, f := range procs {
		mark, ok := ownerOf(f)
		if !ok || journal.Judge(mark) != journal.Gone {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			continue
		}
		cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("end process %d: %w", pid, err))
			continue
		}
		out = append(out, Leftover{pid, strings.TrimSpace(
			strings.ReplaceAll(string(cmd), "\x00", " "))})
	}
	return out, errors.Join(errs...)
}

// ownerOf returns the mark in a process's environment. ok is false if there is no mark or the
// environment cannot be read.
func ownerOf(environ string) (mark string, ok bool) {
	b, err := os.ReadFile(environ)
	if err != nil {
		return "", false
	}
	for _, v := range strings.Split(string(b), "\x00") {
		if mark, ok := strings.CutPrefix(v, runMark); ok {
			return mark, true
		}
	}
	return "", false
}

func (s *site) drain() (sample.Headroom, error) {
	var all []local.Swept
	for _, at := range s.spots() {
		all = append(all, local.Swept{Space: at.ns, Where: at.where})
	}
	return local.Drain(all, len(s.path.Proxies) > 0)
}

func (s *site) arrived() (n uint64, err error) {
	ns := s.a.ns
	switch {
	case s.path.Spec.To.Outside():
		ns = s.b.ns
	case len(s.Servers) > 0:
		ns = s.Servers[0].ns
	}
	err = ns.Do(func() error { n, err = sock.Arrivals(); return err })
	return n, err
}

func (s *site) spots() []spot {
	out := []spot{{s.a.ns, s.a.name}, {s.b.ns, s.b.name}}
	for _, c := range s.boxes {
		out = append(out, spot{c.ns, c.name})
	}
	return append(out, s.more...)
}

func (s *site) inspected() []local.Inspected {
	var all []local.Inspected
	for _, at := range s.spots() {
		all = append(all, local.Inspected{Space: at.ns, Where: at.where})
	}
	return all
}
