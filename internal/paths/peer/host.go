package peer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Host is a machine as the user names it to ssh.
type Host struct {
	User string // "": ssh's default
	Name string // a name, an address or an alias of ssh's configuration
	Port uint16 // 0: ssh's default
}

// ParseHost parses [user@]HOST[:PORT]. An IPv6 address with a port is in brackets. ParseHost
// returns an error for text that ssh would take for an option or for several words.
func ParseHost(s string) (h Host, err error) {
	bad := func(why string) (Host, error) {
		return Host{}, fmt.Errorf("%q is not a machine: %s", s, why)
	}
	rest := s
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		h.User, rest = rest[:i], rest[i+1:]
		if h.User == "" {
			return bad("the user before @ is empty")
		}
	}
	name, port := rest, ""
	switch inside, after, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]"); {
	case strings.HasPrefix(rest, "["):
		if !ok || after != "" && !strings.HasPrefix(after, ":") {
			return bad("a bracket is not closed, or what follows it is not a port")
		}
		name, port = inside, strings.TrimPrefix(after, ":")
		if after == ":" {
			return bad("the port is empty")
		}
	case strings.Count(rest, ":") == 1:
		name, port, _ = strings.Cut(rest, ":")
		if port == "" {
			return bad("the port is empty")
		}
	}
	if h.Name = name; name == "" {
		return bad("it has no name")
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return bad("the port must be a number from 1 to 65535")
		}
		h.Port = uint16(n)
	}
	const longest = 255 // of names in DNS, and enough for users
	for _, word := range []string{h.User, h.Name} {
		if len(word) > longest {
			return bad("it is too long")
		}
		if err := plain(word); err != nil {
			return bad(err.Error())
		}
	}
	return h, nil
}

// plain returns an error if ssh, or a configured command with %h or %r, could take the word for
// something other than a name.
func plain(word string) error {
	if strings.HasPrefix(word, "-") {
		return errors.New("it begins with a dash")
	}
	if i := strings.IndexFunc(word, func(r rune) bool {
		return r == unicode.ReplacementChar || unicode.IsSpace(r) || !unicode.IsPrint(r) ||
			strings.ContainsRune("'`\"$\\;&<>|(){}[]!*?#", r)
	}); i >= 0 {
		return fmt.Errorf("it has a character that names do not have: %q", []rune(word[i:])[0])
	}
	return nil
}

// String returns the form for ParseHost.
func (h Host) String() string {
	out := h.Name
	if h.Port != 0 {
		if strings.Contains(out, ":") {
			out = "[" + out + "]"
		}
		out += ":" + strconv.Itoa(int(h.Port))
	}
	if h.User != "" {
		out = h.User + "@" + out
	}
	return out
}

// typed returns the host for ssh's command line, with the given user and port.
func (h Host) typed() string {
	out := h.Name
	if h.User != "" {
		out = h.User + "@" + out
	}
	if h.Port != 0 {
		out = "-p " + strconv.Itoa(int(h.Port)) + " " + out
	}
	return out
}

// in replaces HOST and USER in a remedy. After --peer the host has the form of toll's flags, after
// -R that of ssh's known_hosts, and elsewhere that of ssh's command line.
func (h Host) in(remedy, user string) string {
	root, known := Host{User: "root", Name: h.Name, Port: h.Port}, h.Name
	if h.Port != 0 {
		known = "'[" + h.Name + "]:" + strconv.Itoa(int(h.Port)) + "'"
	}
	return strings.NewReplacer("--peer root@HOST", "--peer "+root.String(), "-R HOST", "-R "+known,
		"HOST:PORT", "HOST:PORT", "HOST", h.typed(), "USER", user).Replace(remedy)
}

// here reports whether the host is this machine and needs no ssh: localhost, without a user and a
// port.
func (h Host) here() bool { return h == Host{Name: "localhost"} }

// args returns ssh's arguments. The user's configuration applies, but ssh asks no questions, sends
// no keep-alive messages, which could fall into windows, and leaves no master connection behind.
func (h Host) args(command string) []string {
	out := []string{"-T", "-e", "none", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o",
		"ServerAliveInterval=0", "-o", "TCPKeepAlive=yes",
		"-o", "ClearAllForwardings=yes", "-o", "ControlMaster=no", "-o", "PermitLocalCommand=no",
		"-o", "RemoteCommand=none"}
	if h.User != "" {
		out = append(out, "-l", h.User)
	}
	if h.Port != 0 {
		out = append(out, "-p", strconv.Itoa(int(h.Port)))
	}
	return append(out, "--", h.Name, command)
}
