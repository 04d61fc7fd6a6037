package mode

import (
	"cmp"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// Target is the address that the client dials, never "localhost". It decides the path, so each is a
// cell.
type Target string

const (
	ToLoopback  Target = "loopback"  // 127.0.0.1
	ToLoopback6 Target = "loopback6" // ::1
	ToAddress   Target = "address"   // the machine's own on the wire
	ToContainer Target = "container"

	ToAddress6   Target = "address6"
	ToContainer6 Target = "container6"

	// ToOutside is the address of another machine, on which the server is a plain process. The mode
	// is then the client's, and its route leads from the client out to the wire.
	ToOutside  Target = "outside"
	ToOutside6 Target = "outside6"
)

var targets = []Target{ToLoopback, ToLoopback6, ToAddress, ToAddress6, ToContainer, ToContainer6,
	ToOutside, ToOutside6}

// Targets returns all targets.
func Targets() []Target { return slices.Clone(targets) }

// Inward returns the targets that are addresses of the mode's server.
func Inward(of []Target) []Target { return slices.DeleteFunc(slices.Clone(of), Target.Outside) }

var families = map[Target]Target{ToLoopback: ToLoopback6, ToAddress: ToAddress6,
	ToContainer: ToContainer6, ToOutside: ToOutside6}

// Six reports whether the client dials an IPv6 address.
func (t Target) Six() bool { return t != "" && t == t.Over6() }

// Four reports whether the client dials an IPv4 address.
func (t Target) Four() bool { return !t.Six() }

func (t Target) family() string {
	if t.Six() {
		return "IPv6"
	}
	return "IPv4"
}

// Over6 returns the target's counterpart over IPv6.
func (t Target) Over6() Target { return cmp.Or(families[t], t) }

// Over4 returns the target's counterpart over IPv4.
func (t Target) Over4() Target {
	for four, six := range families {
		if six == t {
			return four
		}
	}
	return t
}

// Outside reports whether the server is a plain process on another machine.
func (t Target) Outside() bool { return t.Over4() == ToOutside }

// Short returns the target as a suffix to a mode's name in tables.
func (t Target) Short() string {
	switch t {
	case ToLoopback:
		return ":lo"
	case ToLoopback6:
		return ":lo6"
	case ToAddress:
		return ":addr"
	case ToAddress6:
		return ":addr6"
	case ToContainer6:
		return ":ctr6"
	case ToOutside:
		return ":out"
	case ToOutside6:
		return ":out6"
	default:
		return ":ctr"
	}
}

// words returns the target as tables show it next to a mode's Short.
func (t Target) words() string {
	switch t {
	case ToLoopback:
		return "127.0.0.1"
	case ToLoopback6:
		return "::1"
	case ToAddress:
		return "own IP"
	case ToAddress6:
		return "own IPv6"
	case ToContainer6:
		return "IPv6"
	case ToOutside:
		return "outward"
	case ToOutside6:
		return "outward IPv6"
	default:
		return "container's IP"
	}
}

// ParseTarget parses a value of `--to`.
func ParseTarget(s string) (Target, error) {
	return suggest.Parse("target", s, targets)
}
