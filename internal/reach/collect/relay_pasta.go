package collect

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

func arguments(pid int) []string {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return nil
	}
	args, _ := p.CmdLine()
	return args
}

// owner returns the user of a process, or nobody.
func owner(pid int) uint32 {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return nobody
	}
	return user(p)
}

// pastaForwards parses the options for ports, as passt(1) describes them. auto is the default of
// pasta, not of passt: all ports on which programs listen. all is false if pasta may have further
// ports, or there are more than maxForwards.
func pastaForwards(args []string, auto bool) (out []forward, all bool) {
	all = true
	given := map[string]bool{}
	options := map[string]string{"-t": "tcp", "--tcp-ports": "tcp", "-u": "udp",
		"--udp-ports": "udp"}
	for i := 1; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		proto := options[name]
		switch {
		case proto != "" && !joined && i+1 < len(args):
			i++
			value = args[i]
		case proto == "" && len(args[i]) > 2 && options[args[i][:2]] != "" && args[i][1] != '-':
			proto, value = options[args[i][:2]], args[i][2:]
		}
		if proto == "" {
			continue
		}
		given[proto] = true
		more, ok := pastaPorts(proto, value, maxForwards-len(out))
		out, all = append(out, more...), all && ok
	}
	for _, proto := range []string{"tcp", "udp"} {
		if auto && !given[proto] {
			out, all = append(out, forward{proto: proto}), false
		}
	}
	return out, all
}

// maxForwards limits the ports of one pasta: all of TCP and of UDP.
const maxForwards = 2 << 16

// pastaPorts parses the value of an option, to at most the given number of forwards. ok is false if
// there may be more.
func pastaPorts(proto, value string, most int) (out []forward, ok bool) {
	if value == "none" {
		return nil, true
	}
	var addr netip.Addr
	if at, rest, found := strings.Cut(value, "/"); found {
		at, _, _ = strings.Cut(at, "%")
		addr, _ = netip.ParseAddr(strings.Trim(at, "[]")) // invalid: a device, any address
		value = rest
	}
	parts := strings.Split(value, ",")
	excluded := excludedPorts(parts)
	parts = slices.DeleteFunc(parts, func(p string) bool { return strings.HasPrefix(p, "~") })
	if len(parts) == 0 { // all other ports
		return append(out, forward{proto: proto, host: netip.AddrPortFrom(addr, 0)}), false
	}
	for _, part := range parts {
		if len(out) >= most {
			return out, false
		}
		from, to, mapped := strings.Cut(part, ":")
		low, high, ok := portRange(from)
		target := low
		if mapped {
			var ok2 bool
			if target, _, ok2 = portRange(to); !ok2 {
				return out, false
			}
		}
		if !ok { // auto, all
			return append(out, forward{proto: proto, host: netip.AddrPortFrom(addr, 0)}), false
		}
		for n := range int(high-low) + 1 {
			if len(out) >= most {
				return out, false
			}
			if port := low + uint16(n); !slices.ContainsFunc(excluded, func(x [2]uint16) bool {
				return x[0] <= port && port <= x[1]
			}) {
				out = append(out, forward{proto, netip.AddrPortFrom(addr, port), target + uint16(n)})
			}
		}
	}
	return out, true
}

// excludedPorts returns the first and last ports of the specifications that begin with "~".
func excludedPorts(parts []string) (out [][2]uint16) {
	for _, p := range parts {
		text, ok := strings.CutPrefix(p, "~")
		if low, high, valid := portRange(text); ok && valid {
			out = append(out, [2]uint16{low, high})
		}
	}
	return out
}

func portRange(text string) (low, high uint16, ok bool) {
	first, last, ranged := strings.Cut(text, "-")
	a, errA := strconv.ParseUint(first, 10, 16)
	b, errB := a, error(nil)
	if ranged {
		b, errB = strconv.ParseUint(last, 10, 16)
	}
	return uint16(a), uint16(b), errA == nil && errB == nil && a > 0 && a <= b
}
