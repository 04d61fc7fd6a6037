package link

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Neighbours is how full a table of neighbours is, which all network namespaces share.
type Neighbours struct {
	Entries int
	Max     int // gc_thresh3: with more, the kernel refuses new ones
}

// NeighbourTables returns how full the tables of IPv4 and IPv6 are, or the zero value of one that
// is not visible.
func NeighbourTables() (v4, v6 Neighbours) {
	return readNeighbours("arp_cache", "ipv4"), readNeighbours("ndisc_cache", "ipv6")
}

func readNeighbours(table, family string) (n Neighbours) {
	counts, err := os.ReadFile("/proc/net/stat/" + table)
	if err != nil {
		return n
	}
	limit, err := os.ReadFile(fmt.Sprintf("/proc/sys/net/%s/neigh/default/gc_thresh3", family))
	if err != nil {
		return n
	}
	n, _ = parseNeighbours(string(counts), string(limit))
	return n
}

// parseNeighbours reads the first column of the second line, in hexadecimal; each line has it.
func parseNeighbours(counts, limit string) (n Neighbours, ok bool) {
	const base, bits = 16, 31
	head, rest, _ := strings.Cut(counts, "\n")
	fields := strings.Fields(rest)
	if !strings.HasPrefix(head, "entries ") || len(fields) == 0 {
		return n, false
	}
	entries, err := strconv.ParseUint(fields[0], base, bits)
	if err != nil {
		return n, false
	}
	most, err := strconv.Atoi(strings.TrimSpace(limit))
	if err != nil || most < 1 {
		return n, false
	}
	return Neighbours{int(entries), most}, true
}
