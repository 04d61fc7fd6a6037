package ports

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// portRange is consecutive ports of a protocol.
type portRange struct {
	low, high uint16
	proto     string
}

func (p portRange) has(port uint16, proto string) bool {
	return p.proto == proto && p.low <= port && port <= p.high
}

const (
	maxExpectations = 10000
	maxLine         = 4096

	byteOrderMark = "\ufeff" // with which editors on Windows begin a file
)

var comment = regexp.MustCompile(`(^|\s)#.*`)

// ParseExpectations reads the lines of a file of --expect: "WHO reach [only] PORT…", "WHO do not
// reach PORT…", "WHO reach no port" and "nobody outside reaches PORT…". It skips empty lines and
// comments, which begin with "#" after a space or at the beginning of a line, and lines that are
// there already. client is the address of --client, which may be a WHO.
func ParseExpectations(r io.Reader, client netip.Addr) ([]Expectation, error) {
	var out []Expectation
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, maxLine), maxLine)
	number := 1
	for ; in.Scan(); number++ {
		text := in.Text()
		if number == 1 {
			text = strings.TrimPrefix(text, byteOrderMark)
		}
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("line %d is not UTF-8 text", number)
		}
		words := strings.Fields(comment.ReplaceAllString(text, ""))
		if len(words) == 0 {
			continue
		}
		e, err := parseExpectation(words, client)
		if e.Number = number; err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if slices.ContainsFunc(out, func(o Expectation) bool { return o.Line == e.Line }) {
			continue
		}
		if out = append(out, e); len(out) > maxExpectations {
			return nil, fmt.Errorf("more than %d lines", maxExpectations)
		}
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d is longer than %d bytes", number, maxLine)
	case err != nil:
		return nil, fmt.Errorf("read expectations: %w", err)
	case len(out) == 0:
		return nil, errors.New("there is no line that could be checked")
	}
	return out, nil
}

func parseExpectation(words []string, client netip.Addr) (e Expectation, err error) {
	e.Line = strings.Join(words, " ")
	verb := len(words) - 1 // the last one, because a network may have such a name
	for ; verb >= 0 && words[verb] != "reach" && words[verb] != "reaches"; verb-- {
	}
	if verb < 0 {
		return e, fmt.Errorf("%q has no \"reach\"", e.Line)
	}
	who, rest := words[:verb], words[verb+1:]
	if n := len(who); n > 2 && (who[n-2] == "do" || who[n-2] == "does") && who[n-1] == "not" {
		e.not, who = true, who[:n-2]
	}
	if e.who, e.network, err = parseWho(who, client); err != nil {
		return e, err
	}
	if strings.Join(who, " ") == nobodyOutside {
		if e.not {
			return e, meaning(fmt.Errorf("%q denies twice", e.Line),
				nobodyOutside+" reaches "+strings.Join(rest, " "))
		}
		e.not = true
	}
	switch {
	case strings.Join(rest, " ") == "no port" && !e.not:
		e.only = true
		return e, nil
	case len(rest) > 0 && rest[0] == "only" && !e.not:
		e.only, rest = true, rest[1:]
	}
	if len(rest) == 0 {
		return e, fmt.Errorf("%q names no port", e.Line)
	}
	for _, w := range rest {
		p, err := parsePorts(strings.TrimSuffix(w, ","))
		if err != nil {
			return e, err
		}
		e.ports = append(e.ports, p)
	}
	return e, nil
}

// hinted is an error with what was probably meant.
type hinted struct {
	error
	meant string
}

func (e *hinted) Hint() string { return "did you mean " + e.meant + "?" }

// meaning adds what was probably meant to an error; "": that is not known.
func meaning(err error, meant string) error {
	if meant == "" {
		return err
	}
	return &hinted{err, meant}
}

// excludes reports whether o expects ports to be reached that e does not allow.
func (e *Expectation) excludes(o Expectation) bool {
	if o.who != e.who || o.not || e.network != "" && e.network != o.network {
		return false
	}
	return slices.ContainsFunc(o.ports, func(p portRange) bool {
		within := slices.ContainsFunc(e.ports, func(q portRange) bool {
			return q.proto == p.proto && q.low <= p.high && p.low <= q.high
		})
		return e.not && within || e.only && !within
	})
}

func parseWho(words []string, client netip.Addr) (who, network string, err error) {
	text := strings.Join(words, " ")
	switch {
	case text == machines, text == nobodyOutside:
		return machines, "", nil
	case text == containers, text == here:
		return text, "", nil
	case len(words) > 2 && words[0] == containers && words[1] == "on":
		return containers, strings.Join(words[2:], " "), nil
	}
	if a, err := netip.ParseAddr(text); err == nil && client.IsValid() && a.Unmap() == client.Unmap() {
		return machines, "", nil
	} else if err == nil {
		return "", "", fmt.Errorf("%s is judged only with --client %s", a, a)
	}
	return "", "", meaning(fmt.Errorf("%q is not one of: other machines, containers, "+
		"containers on NETWORK, this machine, nobody outside, the address of --client", text),
		meantWho(words))
}

// meantWho returns what the words in front of "reach" may mean, or "".
func meantWho(words []string) string {
	text := strings.ToLower(strings.Join(words, " "))
	for _, no := range []string{" cannot", " can not", " can't", " don't", " doesn't", " must not",
		" may not", " should not", " never"} {
		if who, ok := strings.CutSuffix(text, no); ok {
			return who + " do not reach"
		}
	}
	if n := len(words); n > 1 && slices.Contains([]string{"container", "containers", "network"},
		strings.ToLower(words[0])) {
		last := strings.TrimPrefix(strings.Join(words[1:], " "), "of ")
		for _, word := range []string{"on ", "in ", "at ", "network "} {
			last = strings.TrimPrefix(last, word)
		}
		if strings.ToLower(words[0]) == "container" && words[1] != "on" {
			last = "NETWORK" // lines are not about one container
		}
		return "containers on " + last
	}
	if to := called[text]; to != "" {
		return to
	}
	known := []string{machines, containers, here, nobodyOutside}
	return strings.Join(suggest.Words(text, known), " or ")
}

// called has other names for clients.
var called = map[string]string{"localhost": here, "host": here, "the host": here, "this host": here,
	"machine": here, "everybody": machines, "everyone": machines, "anybody": machines, "all": machines,
	"internet": machines, "the internet": machines, "outside": machines, "others": machines,
	"machines": machines, "clients": machines, "other hosts": machines, "nobody": nobodyOutside,
	"no one": nobodyOutside, "docker": containers, "pods": containers}

const nobodyOutside = "nobody outside"

func parsePorts(text string) (portRange, error) {
	p, err := readPorts(text)
	if err != nil {
		err = meaning(err, meantPorts(text))
	}
	return p, err
}

func readPorts(text string) (p portRange, err error) {
	number, proto, ok := strings.Cut(text, "/")
	low, high, ranged := strings.Cut(number, "-")
	if !ranged {
		high = low
	}
	a, errA := strconv.ParseUint(low, 10, 16)
	b, errB := strconv.ParseUint(high, 10, 16)
	if !ok || proto != "tcp" && proto != "udp" || errA != nil || errB != nil || a == 0 || a > b {
		return p, fmt.Errorf("%q is not a port such as 443/tcp or 8000-8010/udp", text)
	}
	return portRange{uint16(a), uint16(b), proto}, nil
}

func (p portRange) String() string { return Range(p.low, p.high) + "/" + p.proto }

// meantPorts returns the ports that a text such as "22", "TCP/22", "22,443/tcp" or "8000:8010/tcp"
// may mean, or "".
func meantPorts(text string) string {
	numbers, proto, ok := strings.Cut(strings.ToLower(text), "/")
	switch {
	case !ok:
		proto = "tcp"
	case numbers == "tcp" || numbers == "udp":
		numbers, proto = proto, numbers
	}
	var out []string
	for number := range strings.SplitSeq(numbers, ",") {
		low, high, ranged := strings.Cut(strings.ReplaceAll(number, ":", "-"), "-")
		p, err := readPorts(low + "/" + proto)
		if ranged && err == nil {
			var q portRange
			q, err = readPorts(high + "/" + proto)
			p.low, p.high = min(p.low, q.low), max(p.high, q.high)
		}
		if err != nil {
			return ""
		}
		out = append(out, p.String())
	}
	return strings.Join(out, " ")
}
