package dial

import (
	"os"
	"strconv"
	"strings"
)

// counters returns the kernel's counters for the calling thread's namespace. Only "rt_cache" and
// "softnet" count packets of all namespaces.
func counters() (map[string]int, error) {
	const dir = "/proc/thread-self/net/"
	out := map[string]int{}
	for _, name := range []string{"netstat", "snmp"} {
		b, err := os.ReadFile(dir + name)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(b), "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
			for k := 1; k < min(len(names), len(values)); k++ {
				out[strings.TrimSuffix(names[0], ":")+"."+names[k]], _ = strconv.Atoi(values[k])
			}
		}
	}
	// A file is missing if the kernel lacks its part.
	if b, err := os.ReadFile(dir + "snmp6"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, value, ok := strings.Cut(line, " "); ok {
				out[strings.TrimSpace(name)], _ = strconv.Atoi(strings.TrimSpace(value))
			}
		}
	}
	for _, name := range []string{"rt_cache", "nf_conntrack"} {
		if b, err := os.ReadFile(dir + "stat/" + name); err == nil {
			head, rest, _ := strings.Cut(string(b), "\n")
			addColumns(out, name, strings.Fields(head), rest)
		}
	}
	if b, err := os.ReadFile(dir + "softnet_stat"); err == nil {
		addColumns(out, "softnet", []string{"processed", "dropped"}, string(b))
	}
	return out, nil
}

// addColumns adds up columns of hexadecimal numbers that have a line for each CPU.
func addColumns(out map[string]int, prefix string, names []string, lines string) {
	for line := range strings.Lines(lines) {
		for k, value := range strings.Fields(line) {
			if n, err := strconv.ParseUint(value, 16, 64); err == nil && k < len(names) {
				out[prefix+"."+names[k]] += int(n)
			}
		}
	}
}
