package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/machine/files"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/reach/collect"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

type portsFlags struct {
	out                           outputFlags
	results, client, save, reread string
	proto                         string // of the port; "": any
	with                          comparedWith
	try                           tryFlags
}

const fromFileFlag = "from-file"

// tryFor is the longest time by which trying remedies may delay a report.
const tryFor = 5 * time.Second

func newPorts(e env) *cobra.Command {
	var f portsFlags
	c := &cobra.Command{
		Use:   "ports [PORT[/PROTOCOL]]",
		Short: "Show who answers each port, from where, and what blocks others",
		Long: `ports lists every port that answers on this machine: who serves it, who holds the
socket, and which route a client takes from 127.0.0.1, ::1, the machine's own
addresses, a container and another machine. It names traps, with evidence and remedy.

As root it copies the machine's network (links, addresses, routes, packet filters and
the containers' namespaces) into private namespaces and connects there from each of
these places, by TCP and UDP. So the kernel itself decides, and toll names the rule that
drops a packet. No packet leaves the copy, which ends with the command. Without root it
connects to the real TCP ports from this machine, and marks what it cannot know with a ?.

With a port it draws each route, and also connects to the real port from this machine.
It changes nothing. --save writes what it read to a file without secrets; --from-file
judges such a file on any machine, without root, and --against says who gained and
lost which port since. --try runs shell commands in the copy, confined to it, and says
who would gain and lose what: iptables, nft, ip, sysctl, ufw and the like, nsenter -t PID
-n for a container. --expect checks lines such as "other machines reach only 22/tcp
443/tcp", "containers on shop reach 5432/tcp" or "nobody outside reaches 8081/tcp".`,
		Example: `  sudo toll ports
  sudo toll ports 8080
  sudo toll ports --client 203.0.113.7
  sudo toll ports --save machine.json
  toll ports 8080 --from-file machine.json
  sudo toll ports --against machine.json
  sudo toll ports --try 'ufw default deny; ufw allow 22/tcp; ufw --force enable'
  sudo toll ports --try @firewall.sh --expect ports.txt
  sudo toll ports --format expect --output ports.txt
  sudo toll ports --expect ports.txt
  toll ports --results run.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return notOne("ports", "port", len(args), "toll ports "+args[0])
			}
			return nil
		},
		RunE: atOnce(func(c *cobra.Command, args []string) error { return f.show(c, e, args) }),
	}
	fl := c.Flags()
	add(fl,
		flagDef{name: "client", group: toMeasure, value: text(&f.client, ""), word: "ADDRESS",
			help: "the address of the other machine (default any)"},
		flagDef{name: fromFileFlag, group: toRead, value: text(&f.reread, ""), word: "FILE",
			help: "judge a file of --save instead of this machine", files: machineFile, not: saveFlag},
		flagDef{name: "results", group: toRead, value: text(&f.results, ""), word: "FILE",
			help:  "results file to take the costs of such paths from (toll compare --save)",
			files: resultsFile})
	f.try.add(fl)
	f.with.add(fl)
	f.out.add(fl, document.PortList)
	f.out.addMore(fl, "draw each hop of a port's routes, and name all commands that measure them")
	add(fl, flagDef{name: saveFlag, group: toWrite, value: text(&f.save, ""), word: "FILE",
		help: "also write what was read to this file, for --from-file (as root)", files: machineFile})
	return c
}

func (f *portsFlags) check() error {
	if f.results == "-" && f.reread == "-" {
		return usage(errors.New("--results and --from-file cannot both read standard input"),
			"give one of them another file")
	}
	if f.out.format.name == junitName && f.with.expect == "" {
		return usage(errors.New("--format junit writes what --expect judges"),
			"toll ports --expect FILE --format junit")
	}
	f.with.now = f.out.format.name == expectFlag
	if f.with.now && (f.with.expect != "" || f.with.against != "" || f.try.any()) {
		return usage(errors.New("--format expect writes what holds now: it goes with none of "+
			"--expect, --against and --try"), "toll ports --format expect --output FILE")
	}
	return f.out.check(place{"results", f.results}, place{fromFileFlag, f.reread},
		place{saveFlag, f.save}, place{expectFlag, f.with.expect}, place{againstFlag, f.with.against},
		place{tryFlag, f.try.file()})
}

func (f *portsFlags) show(c *cobra.Command, e env, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	var port uint16 // 0: all
	if len(args) > 0 {
		var err error
		if _, _, host, at := addressIn(args[0]); host != "" && at != "" {
			return usage(fmt.Errorf("%q is not a port", args[0]), sample.CommandLine([]string{"ports", at}))
		}
		number, proto, ok := strings.Cut(args[0], "/")
		if ok && proto != "tcp" && proto != "udp" {
			return usage(fmt.Errorf("%q is not a port: the protocol must be tcp or udp", args[0]),
				"toll ports 8080/tcp")
		}
		if port, err = parsePort(number, "toll ports 8080; toll ports lists all ports, with the "+
			"containers that serve them"); err != nil {
			return err
		}
		f.proto = proto
	}
	if err := f.with.check(port); err != nil {
		return err
	}
	r, err := f.read(c, e, port)
	if err != nil {
		return err
	}
	if f.with.now {
		return f.out.print(e, view.Holding(r))
	}
	sentence.FillPorts(r)
	wrong := r.Contradict()
	d := typed(view.Ports(r, f.out.whole()), e)
	if f.reread == "" {
		pastedHere(d)
	}
	err = f.out.print(e, d)
	if err == nil {
		err = f.try.failed(r)
	}
	if err == nil {
		err = f.with.failed(r)
	}
	if f.try.any() {
		return err
	}
	if err == nil && port != 0 && (wrong || !r.Served()) {
		err = &failure{code: exitCells}
	}
	return err
}

// pastedHere leaves sudo out of the commands of a document if this machine has none and needs none.
func pastedHere(d document.Document) {
	for _, s := range d.Sections {
		for i, b := range s.Blocks {
			c, _ := b.(document.Command)
			if command, needsRoot := strings.CutPrefix(c.Line, "sudo "); needsRoot {
				c.Line = remedy.AsRoot(command)
				s.Blocks[i] = c
			}
		}
	}
}

// read returns the report. If there is a results file, it is read first. If port is not 0, read
// connects to it, except for a saved machine.
func (f *portsFlags) read(c *cobra.Command, e env, port uint16) (*ports.Report, error) {
	from, err := parseClient(f.client)
	if err != nil {
		return nil, err
	}
	var judged *analysis.Report
	if f.results != "" {
		file, err := readResults(e, f.results, c.InOrStdin())
		if err != nil {
			return nil, err
		}
		judged = judgeFile(e, file).Base()
	}
	if err := f.with.read(c, e, from, port); err != nil {
		return nil, err
	}
	var r *ports.Report
	if f.try.any() {
		r, err = f.tryCommands(c, e, from, port)
	} else {
		r, err = f.judge(c, e, from, port)
	}
	if err != nil {
		return nil, err
	}
	f.with.apply(r)
	if port == 0 && os.Geteuid() != 0 && f.reread == "" {
		r.Missing = append(r.Missing, ports.Missing{What: "what containers and other machines reach",
			Why:    "only root may connect from their places, in a copy of this machine's network",
			Remedy: "run toll ports as root"})
	}
	if judged != nil {
		r.Price(f.results, judged)
	}
	return r, nil
}

// judge returns the report on the machine as it is.
func (f *portsFlags) judge(c *cobra.Command, e env, client netip.Addr,
	port uint16) (*ports.Report, error) {
	facts, m, network, err := f.machine(c, e, client)
	if err != nil {
		return nil, err
	}
	var checks []ports.Check
	if m != nil {
		err = collect.AskSaved(c.Context(), facts, m, port)
	} else if checks, err = collect.Ask(c.Context(), facts, network, port); err == nil &&
		f.save != "" {
		err = f.saveMachine(c, e, facts)
	}
	if err != nil {
		return nil, err
	}
	r := ports.Judge(facts, port)
	r.Checks = checks
	if checks == nil && f.reread == "" && (port != 0 || facts.Copy == nil && !f.with.any()) {
		collect.Check(c.Context(), r)
		if port == 0 {
			r.TakeChecks()
		}
	}
	return r, nil
}

// machine returns the facts and the network of the saved machine m or, if m is nil, of this one.
func (f *portsFlags) machine(c *cobra.Command, e env, client netip.Addr) (facts *ports.Facts,
	m *replica.Machine, network collect.Network, err error) {
	switch {
	case f.reread != "":
		facts, m, err = loadMachine(e, fromFileFlag, f.reread, c.InOrStdin())
	case f.save != "" && os.Geteuid() != 0:
		err = &failure{exitNothing, errors.New("--save: only root may read what it saves"),
			byRoot(e)}
	default:
		facts, network, err = collect.Read(c.Context())
	}
	if err == nil {
		if err = f.about(facts, client); err != nil {
			err = errors.Join(err, network.Close())
		}
	}
	return facts, m, network, err
}

// about sets what the report is about.
func (f *portsFlags) about(facts *ports.Facts, client netip.Addr) error {
	if client.IsValid() {
		if err := facts.CheckClient(client); err != nil {
			return usage(fmt.Errorf("--client: %w", err), "toll ports --client 203.0.113.1")
		}
	}
	facts.Client, facts.Proto = client, f.proto
	if f.with.old != nil {
		facts.Before = f.with.old.Copy
	}
	if facts.Everything = f.with.any() || f.try.any(); !facts.Everything {
		facts.TryFor = tryFor
	}
	return nil
}

// loadMachine reads the file that a flag names.
func loadMachine(e env, flag, name string, in io.Reader) (*ports.Facts, *replica.Machine, error) {
	f, err := input(e, name, in)
	if err != nil {
		hint := remedy.AsRoot("toll ports --save FILE") + " makes one"
		if errors.Is(err, fs.ErrPermission) {
			hint = mayRead
		}
		return nil, nil, &failure{exitBadFile, err, hint}
	}
	defer f.Close()
	facts, m, err := collect.Load(f)
	if err != nil {
		err = &failure{exitBadFile, fmt.Errorf("%s: %w", name, err),
			cmp.Or(ownHint(err), "--"+flag+" needs a file that toll ports --save wrote")}
	}
	return facts, m, err
}

func (f *portsFlags) saveMachine(c *cobra.Command, e env, facts *ports.Facts) error {
	var b bytes.Buffer
	if err := collect.Save(c.Context(), &b, facts); err != nil {
		return err
	}
	if !files.Direct(f.save) {
		return unsaved("the machine", files.Replace(f.save, b.Bytes(), f.out.force))
	}
	w, closeFile, err := create(f.save, e.stdout, f.out.force)
	if err == nil {
		_, err = w.Write(b.Bytes())
		err = errors.Join(err, closeFile())
	}
	return unsaved("the machine", err)
}

func parseClient(s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(s)
	if a = a.Unmap(); err != nil || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() ||
		a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return a, usage(fmt.Errorf("--client %q is not the IP address of a machine", s),
			"toll ports --client 203.0.113.1")
	}
	return a, nil
}
