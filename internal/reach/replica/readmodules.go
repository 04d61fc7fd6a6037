package replica

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// modules has the parts of the kernel that may be queried. Querying others would load their
// modules.
type modules struct {
	any bool // all parts may be queried: the modules are unknown, or no module can be loaded
	has map[string]bool
}

func readModules() modules {
	loaded, err := os.ReadFile("/proc/modules")
	if err != nil {
		return modules{any: true}
	}
	m := modules{has: map[string]bool{}}
	for line := range bytes.Lines(loaded) {
		name, _, _ := bytes.Cut(line, []byte(" "))
		m.has[string(name)] = true
	}
	built, err := os.ReadFile(filepath.Join("/lib/modules", release(), "modules.builtin"))
	if err != nil {
		return modules{any: true}
	}
	for line := range bytes.Lines(built) {
		name := strings.TrimSuffix(filepath.Base(strings.TrimSpace(string(line))), ".ko")
		m.has[strings.ReplaceAll(name, "-", "_")] = true
	}
	return m
}

func (m modules) may(name string) bool { return m.any || m.has[name] }
