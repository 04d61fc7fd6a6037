package dial

import (
	"os"
	"strconv"
	"strings"
)

// The sources of counters. The last one counts packets of all namespaces.
const (
	netstat     = "netstat"
	snmp        = "snmp"
	snmp6       = "snmp6"
	tracked     = "stat/nf_conntrack"
	softnetStat = "softnet_stat"
)

// counters returns the kernel's counters for the calling thread's namespace. Without a part of the
// kernel, such as IPv6, it has none of that source.
func counters(sources ...string) (map[string]int, error) {
	out := map[string]int{}
	for _, source := range sources {
		b, err := os.ReadFile("/proc/thread-self/net/" + source)
		switch text := string(b); {
		case err != nil && (source == netstat || source == snmp):
			return nil, err
		case err != nil:
		case source == netstat, source == snmp:
			lines := strings.Split(text, "\n")
			for i := 0; i+1 < len(lines); i += 2 {
				names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
				for k := 1; k < min(len(names), len(values)); k++ {
					out[strings.TrimSuffix(names[0], ":")+"."+names[k]], _ = strconv.Atoi(values[k])
				}
			}
		case source == snmp6:
			for line := range strings.Lines(text) {
				if name, value, ok := strings.Cut(line, " "); ok {
					out[strings.TrimSpace(name)], _ = strconv.Atoi(strings.TrimSpace(value))
				}
			}
		case source == softnetStat:
			addColumns(out, "softnet", []string{"processed", "dropped"}, text)
		default:
			head, rest, _ := strings.Cut(text, "\n")
			addColumns(out, strings.TrimPrefix(source, "stat/"), strings.Fields(head), rest)
		}
	}
	return out, nil
}

// overflows returns the number of packets for which a table or queue of the calling thread's
// namespace had no space.
func overflows() (n int, err error) {
	c, err := counters(tracked, netstat)
	for _, name := range []string{"nf_conntrack.insert_failed", "nf_conntrack.drop",
		"nf_conntrack.early_drop", "TcpExt.ListenOverflows"} {
		n += c[name]
	}
	return n, err
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
