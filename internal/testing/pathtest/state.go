package pathtest

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// State is what a path could leave behind.
type State struct {
	Namespaces []string // of this process's threads
	Children   []string
	Files      int
	Goroutines int
	Links      []string
	Named      []string // network namespaces
	Mounts     int
}

// Observe reads the state of this process and of the machine.
func Observe(t testing.TB) State {
	t.Helper()
	s := State{Goroutines: runtime.NumGoroutine()}
	seen := map[string]bool{}
	for _, f := range glob(t, "/proc/self/task/*/ns/net") {
		if ns, err := os.Readlink(f); err == nil && !seen[ns] {
			seen[ns] = true
			s.Namespaces = append(s.Namespaces, ns)
		}
	}
	slices.Sort(s.Namespaces)
	for _, f := range glob(t, "/proc/self/task/*/children") {
		if b, err := os.ReadFile(f); err == nil {
			s.Children = append(s.Children, strings.Fields(string(b))...)
		}
	}
	slices.Sort(s.Children)
	for _, f := range glob(t, "/proc/self/fd/*") {
		if _, err := os.Readlink(f); err == nil {
			s.Files++
		}
	}
	for _, f := range glob(t, "/sys/class/net/*") {
		s.Links = append(s.Links, filepath.Base(f))
	}
	s.Named = glob(t, "/run/netns/*")
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	s.Mounts = strings.Count(string(b), "\n")
	return s
}

// fill adds to s what was in the earlier state: what an earlier test left may have ended since.
func (s *State) fill(before State) {
	for _, l := range []struct{ now, then *[]string }{{&s.Namespaces, &before.Namespaces},
		{&s.Children, &before.Children}} {
		for _, x := range *l.then {
			if !slices.Contains(*l.now, x) {
				*l.now = append(*l.now, x)
			}
		}
		slices.Sort(*l.now)
	}
	s.Goroutines = max(s.Goroutines, before.Goroutines)
	s.Files = max(s.Files, before.Files)
	s.Mounts = max(s.Mounts, before.Mounts)
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	m, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
