package cli

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(fmt.Errorf("%s takes no arguments, %q was given", c.CommandPath(), args[0]),
			"see "+c.CommandPath()+" --help")
	}
	return nil
}

// oneArgument returns the check of a command that takes one argument. example is a valid command
// line.
func oneArgument(what, example string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return notOne(c.Name(), what, len(args), example)
	}
}

// notOne refuses n of what a command takes one of. example is a valid command line.
func notOne(command, what string, n int, example string) error {
	return usage(fmt.Errorf("%s takes one %s, not %d", command, what, n), example)
}

// parsePort returns the port that word names. example is a valid command line for the hint.
func parsePort(word, example string) (uint16, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(word, ":"), 10, 16)
	if err != nil || n == 0 {
		return 0, usage(fmt.Errorf("%q is not a port: must be from 1 to 65535%s", word, usualPort(word)),
			example)
	}
	return uint16(n), nil
}

// usualPort returns the words for the port of a service in /etc/services, or "".
func usualPort(service string) string {
	if strings.Trim(service, "+-0123456789") == "" {
		return ""
	}
	for _, proto := range []string{"tcp", "udp"} {
		if n, err := net.LookupPort(proto, service); err == nil {
			return fmt.Sprintf("; %s usually has %d/%s", service, n, proto)
		}
	}
	return ""
}

// isRoute reports whether a word is a route. Only routes contain one of ".:=".
func isRoute(w string) bool { return strings.ContainsAny(w, ".:=") }

func splitRoutes(args []string) (modes, routes []string) {
	for _, w := range args {
		if isRoute(w) {
			routes = append(routes, w)
		} else {
			modes = append(modes, w)
		}
	}
	return modes, routes
}

// usualPorts has the ports and the programs for toll run of the protocols of URLs.
var usualPorts = map[string]struct {
	port    string
	program []string
}{
	"redis":      {"6379", []string{"--recipe", "redis"}},
	"postgres":   {"5432", []string{"--recipe", "pgbench"}},
	"postgresql": {"5432", []string{"--recipe", "pgbench"}},
	"http":       {"80", []string{"--client", "curl -so /dev/null http://{addr}/"}},
	"https":      {"443", []string{"--client", "curl -sko /dev/null https://{addr}/"}},
	"mysql":      {"3306", []string{"--client", "mysqladmin -h {host} -P {port} ping"}},
}

// addressIn returns what a word of the form [NAME=]URL or [NAME=]HOST:PORT dials, without user and
// password, and the protocol of the URL; host is "" for other words.
func addressIn(word string) (name, scheme, host, port string) {
	at := word
	if before, after, ok := strings.Cut(word, "="); ok && !strings.ContainsAny(before, ":/") {
		name, at = before, after
	}
	if !strings.Contains(at, "://") {
		host, port, err := net.SplitHostPort(at)
		if err != nil {
			return name, "", "", ""
		}
		return name, "", host, port
	}
	u, err := url.Parse(at)
	if err != nil || u.Hostname() == "" {
		return name, "", "", ""
	}
	if port = u.Port(); port == "" {
		port = usualPorts[u.Scheme].port
	}
	return name, u.Scheme, u.Hostname(), port
}

// asURLs returns the command line of toll stream or sql with URLs in place of [NAME=]HOST:PORT, or
// "" if there is none among the words.
func asURLs(command string, words []string) string {
	args, found := []string{command}, false
	for _, w := range words {
		if strings.ContainsAny(w, "@?") { // it may have a secret, which is not repeated
			return ""
		}
		if m := brokenScheme.FindStringSubmatch(w); m != nil {
			w, found = m[1]+m[2]+"://"+m[3], true
		}
		name, scheme, host, port := addressIn(w)
		if scheme == "" && host != "" {
			found = true
			at := net.JoinHostPort(host, port)
			switch {
			case command == "sql":
				w = "postgres://USER@" + at + "/DATABASE"
			case port == "443", port == "8443":
				w = "https://" + at
			default:
				w = "http://" + at
			}
			if name != "" {
				w = name + "=" + w
			}
		}
		args = append(args, w)
	}
	if !found {
		return ""
	}
	return sample.CommandLine(args)
}

// brokenScheme matches a URL with a colon or a slash too few: "http//shop:80". A single colon may
// be that of a port.
var brokenScheme = regexp.MustCompile(
	`^([\w.-]+=)?(https?|postgres|postgresql|mysql|sqlserver)(?://|:/|:)([^/\d].*|\d+\.\d.*)$`)

// asRoutes returns the command line of toll run with [NAME=]HOST:PORT in place of URLs, or "" if a
// word has no port. Without programs it has some that fit the first URL.
func asRoutes(words []string, program ...string) string {
	args := []string{"run"}
	for _, w := range words {
		name, scheme, host, port := addressIn(w)
		if host == "" || port == "" {
			return ""
		}
		if program == nil {
			program = usualPorts[scheme].program
		}
		route := net.JoinHostPort(host, port)
		if name != "" {
			route = name + "=" + route
		}
		args = append(args, route)
	}
	if program == nil {
		program = usualPorts["redis"].program
	}
	return sample.CommandLine(append(args, program...))
}
