package cases

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// situation is a file in testdata: what it is about, a script that builds it, the dials, and what
// a real client got.
//
//	-- cards --   NAME OWN-ADDRESSES OTHER-MACHINE'S-ADDRESSES [ITS ROUTES BY WAY OF THE MACHINE]
//	              NAME@CARD: a device that the setup makes, over which the other machine at the card
//	              is reached
//	-- setup --   a script that runs in the machine
//	-- wires --   CARD COMMAND: a command of the other machine at the card, after the setup
//	-- beyond --  CARD NAME PROTO/ADDRESS…: a server on the other machine at the card
//	-- dials --   PLACES ADDRESSES. "several" in front: rules choose a server at random. In
//	              testdata/reports, "unlisted": only the report on the port says it; "doubted": a
//	              copy cannot know it, and the reports say so; "certain": the reports have no doubt.
//	-- answers -- as -update writes them
//	-- traps --   in testdata/traps: CODE PORTS: a part of what is said about them
//	-- client --  in testdata/reports: the address that --client gives
//	-- remedies -- in testdata/remedies: of each dial, as -update writes them
//	-- closes --  in testdata/remedies: dials that connect before the remedies and not after them
//	-- says --    in testdata/reports: PORT: a text of the port's report; 0 is the list; ! in front:
//	              the report has no such text
//	-- try --     in testdata/tries: commands that change the machine, before the dials
//	-- needs --   in testdata/tries and testdata/remedies: programs, such as ufw. The remedies are
//	              then run as they are printed, instead of as they were tried.
type situation struct {
	file    string
	name    string
	cards   []card
	setup   string
	dials   []dial
	answers []string
	traps   []string
	beyond  [][]string
	wires   []string
	client  string
	says    []string
	try     string
	needs   []string
	// remedies has a line for each dial.
	remedies []string
	closes   []dial
	env      []string // of commands, such as PATH
	quiet    bool     // no device sends anything of its own accord
	lenient  bool     // reports need not mention clients that get no answer
}

type card struct {
	name       string
	wire       string // the card at which the other machine is; "": this one
	own, other []netip.Prefix
	routes     []netip.Prefix
}

type dial struct {
	// from is "machine", a card, which stands for the other machine at its wire, or a container.
	from    string
	source  netip.Addr // of a card only
	proto   string
	to      netip.AddrPort
	several bool
	// unlisted: only the report on the port says this
	unlisted bool
	// doubted: reports say that they do not know it
	doubted bool
	// certain: reports have no doubt
	certain bool
}

func (d dial) String() string {
	from := d.from
	if d.source.IsValid() {
		from += "@" + d.source.String()
	}
	return fmt.Sprintf("%s → %s/%s", from, d.proto, d.to)
}

// answer is what a client got.
type answer struct {
	got    string // a replica.Got
	server string
	seen   netip.Addr
	from   netip.AddrPort // a datagram's source if it is not the address that was dialled
}

func (a answer) String() string {
	if a.got != "connected" {
		return a.got
	}
	text := fmt.Sprintf("%s sees %s", a.server, a.seen)
	if a.from.IsValid() {
		text += ", answers from " + a.from.String()
	}
	return text
}

func join(all []answer) string {
	var texts []string
	for _, a := range all {
		texts = append(texts, a.String())
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), " | ")
}

func situations(t testing.TB, pattern string) (all []*situation) {
	t.Helper()
	files, err := filepath.Glob("testdata/" + pattern + ".txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no situations: ", err)
	}
	for _, f := range files {
		s, err := parse(f)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all = append(all, s)
	}
	return all
}

func parse(file string) (*situation, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &situation{file: file, name: strings.TrimSuffix(filepath.Base(file), ".txt")}
	cards := "eth0 192.0.2.10/24 192.0.2.20/24"
	var dials, closes string
	for _, f := range txtar.Parse(b).Files {
		text := string(f.Data)
		switch f.Name {
		case "cards":
			cards = text
		case "setup":
			s.setup = text
		case "dials":
			dials = text
		case "answers":
			s.answers = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		case "beyond":
			for line := range strings.Lines(text) {
				s.beyond = append(s.beyond, strings.Fields(line))
			}
		case "wires":
			s.wires = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		case "client":
			s.client = strings.TrimSpace(text)
		case "try":
			s.try = text
		case "needs":
			s.needs = strings.Fields(text)
		case "says":
			s.says = strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
		case "remedies":
			s.remedies = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		case "closes":
			closes = text
		case "traps":
			s.traps = strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
		default:
			return nil, fmt.Errorf("section %q", f.Name)
		}
	}
	for line := range strings.Lines(cards) {
		c, err := parseCard(strings.Fields(line))
		if err != nil {
			return nil, err
		}
		s.cards = append(s.cards, c)
	}
	if s.dials, err = dialsOf(dials); err == nil {
		s.closes, err = dialsOf(closes)
	}
	return s, err
}

func dialsOf(lines string) (out []dial, err error) {
	for line := range strings.Lines(lines) {
		all, err := parseDials(strings.Fields(line))
		if err != nil {
			return nil, err
		}
		out = append(out, all...)
	}
	return out, nil
}

func parseCard(fields []string) (c card, err error) {
	if len(fields) < 3 {
		return c, fmt.Errorf("card %q", fields)
	}
	c.name, c.wire, _ = strings.Cut(fields[0], "@")
	for i, to := range []*[]netip.Prefix{&c.own, &c.other, &c.routes} {
		if i+1 >= len(fields) {
			break
		}
		for text := range strings.SplitSeq(fields[i+1], ",") {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return c, err
			}
			*to = append(*to, p)
		}
	}
	return c, nil
}

func parseDials(fields []string) (all []dial, err error) {
	var d dial
	if len(fields) > 0 && fields[0] == "several" {
		d.several, fields = true, fields[1:]
	}
	if len(fields) > 0 && fields[0] == "unlisted" {
		d.unlisted, fields = true, fields[1:]
	}
	if len(fields) > 0 && fields[0] == "doubted" {
		d.doubted, fields = true, fields[1:]
	}
	if len(fields) > 0 && fields[0] == "certain" {
		d.certain, fields = true, fields[1:]
	}
	if len(fields) < 2 {
		return nil, fmt.Errorf("dials %q", fields)
	}
	for _, to := range fields[1:] {
		d.proto = "tcp"
		if rest, ok := strings.CutPrefix(to, "udp/"); ok {
			d.proto, to = "udp", rest
		}
		if d.to, err = netip.ParseAddrPort(to); err != nil {
			return nil, err
		}
		for from := range strings.SplitSeq(fields[0], ",") {
			name, source, ok := strings.Cut(from, "@")
			d.from, d.source = name, netip.Addr{}
			if ok {
				if d.source, err = netip.ParseAddr(source); err != nil {
					return nil, err
				}
			}
			all = append(all, d)
		}
	}
	return all, nil
}

// need skips the test if a program is missing. Tests may install ufw, and other daemons only where
// no systemd would start them.
func (s *situation) need(t *testing.T) {
	t.Helper()
	for _, program := range s.needs {
		_, err := exec.LookPath(program)
		_, starts := os.Stat("/run/systemd/system")
		switch {
		case err == nil:
		case program == "ufw" || starts != nil:
			pathtest.SkipOrFail(t, "needs %s", program)
		default:
			t.Skipf("needs %s", program)
		}
	}
}

// card returns the named card, or false if the name is that of another place.
func (s *situation) card(name string) (card, bool) {
	i := slices.IndexFunc(s.cards, func(c card) bool { return c.name == name })
	if i < 0 {
		return card{}, false
	}
	return s.cards[i], true
}

// save writes new answers into the situation's file.
func (s *situation) save(answers []string) error { return s.saveSection("answers", answers) }

// saveSection writes the lines of a section into the situation's file.
func (s *situation) saveSection(name string, lines []string) error {
	b, err := os.ReadFile(s.file)
	if err != nil {
		return err
	}
	a := txtar.Parse(b)
	data := []byte(strings.Join(lines, "\n") + "\n")
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = data
			return os.WriteFile(s.file, txtar.Format(a), 0o644)
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: data})
	return os.WriteFile(s.file, txtar.Format(a), 0o644)
}
