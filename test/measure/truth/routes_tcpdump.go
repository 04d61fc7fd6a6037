package truth

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
)

// dump is a tcpdump that writes the packets at a namespace's eth0 to a file.
type dump struct {
	cmd  *exec.Cmd
	file string
}

// startDump returns once packets are captured.
func startDump(ns *netns.NS, file string) (*dump, error) {
	cmd := exec.Command("tcpdump", "-Z", "root", "-i", "eth0", "-s", "96", "-B", "65536",
		"--time-stamp-precision=nano", "-w", file, "tcp", "port", strconv.Itoa(routePort))
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := ns.Start(cmd); err != nil {
		return nil, err
	}
	d := &dump{cmd, file}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "listening on") {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return d, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("tcpdump does not listen: %w", cmd.Wait()), lines.Err())
}

// end stops tcpdump and returns the instants of the packets that it saw.
func (d *dump) end() (map[packet]int64, error) {
	if err := errors.Join(d.cmd.Process.Signal(os.Interrupt), d.cmd.Wait()); err != nil {
		return nil, fmt.Errorf("tcpdump: %w", err)
	}
	text, err := exec.Command("tcpdump", "-r", d.file, "-n", "-S", "-tt",
		"--time-stamp-precision=nano").Output()
	if err != nil {
		return nil, fmt.Errorf("tcpdump -r: %w", err)
	}
	return instants(text)
}

// packet identifies a segment with payload on its way.
type packet struct{ from, to, sequence string }

// instants reads what tcpdump -tt -S prints, and returns when it saw each segment with payload first,
// in ns since 1970.
func instants(text []byte) (map[packet]int64, error) {
	out := map[packet]int64{}
	for line := range bytes.Lines(text) {
		const at, from, to = 0, 2, 4
		words := strings.Fields(string(line))
		i := slices.Index(words, "seq")
		if i < to || i+1 == len(words) || !strings.Contains(words[i+1], ":") {
			continue // an acknowledgement
		}
		seconds, ns, _ := strings.Cut(words[at], ".")
		s, errS := strconv.ParseInt(seconds, 10, 64)
		n, errN := strconv.ParseInt(ns, 10, 64)
		if err := errors.Join(errS, errN); err != nil || len(ns) != len("123456789") {
			return nil, fmt.Errorf("tcpdump: %.80q has no time in ns: %w", line, err)
		}
		sequence, _, _ := strings.Cut(words[i+1], ":")
		p := packet{words[from], strings.TrimSuffix(words[to], ":"), sequence}
		if _, ok := out[p]; !ok {
			out[p] = s*int64(time.Second) + n
		}
	}
	return out, nil
}

// betweenDevices is how long the requests and replies of a connection were between two devices.
type betweenDevices struct {
	began int64   // ns
	took  float64 // s there and back, the mean of the middle fifth
}

// dumpedConnections returns what was between the client's device and the server's, in the order of time. It
// leaves out connections with few requests, such as those that look for relays.
func dumpedConnections(client, server map[packet]int64) (out []betweenDevices) {
	const fewRequests = 20
	type taken struct {
		began          int64
		there, andBack []int64
	}
	port := "." + strconv.Itoa(routePort)
	all := map[string]*taken{} // by the client's address and port
	for p, a := range client {
		b, ok := server[p]
		if !ok {
			continue
		}
		request := strings.HasSuffix(p.to, port)
		name := p.from
		if !request {
			name = p.to
		}
		if all[name] == nil {
			all[name] = &taken{began: math.MaxInt64}
		}
		x := all[name]
		x.began = min(x.began, a)
		if request {
			x.there = append(x.there, b-a)
		} else {
			x.andBack = append(x.andBack, a-b)
		}
	}
	for _, x := range all {
		if min(len(x.there), len(x.andBack)) >= fewRequests {
			out = append(out, betweenDevices{x.began, middleFifth(x.there) + middleFifth(x.andBack)})
		}
	}
	slices.SortFunc(out, func(a, b betweenDevices) int { return cmp.Compare(a.began, b.began) })
	return out
}

// apart returns by how much longer the connections of b take than those of a right before or after.
func apart(a, b []betweenDevices) (amount, error) {
	var by []float64
	for _, x := range b {
		at, _ := slices.BinarySearchFunc(a, x, func(o, x betweenDevices) int {
			return cmp.Compare(o.began, x.began)
		})
		near := a[max(0, at-1):min(len(a), at+1)]
		if len(near) == 0 {
			break
		}
		sum := 0.0
		for _, o := range near {
			sum += o.took / float64(len(near))
		}
		by = append(by, x.took-sum)
	}
	if len(by) < 2 {
		return amount{}, fmt.Errorf("tcpdump saw %d and %d connections with requests", len(a), len(b))
	}
	return ofDifferences(by), nil
}

// dumped does something to the servers at two addresses, and returns by how much longer tcpdump saw
// the packets to and from the second one between the devices of client and server.
func (w *routeWorld) dumped(plain, planted string, do func() error) (a amount, err error) {
	spaces := map[string]*netns.NS{"client": w.client, plain: w.servers[plain],
		planted: w.servers[planted]}
	dumps := map[string]*dump{}
	for i, name := range slices.Sorted(maps.Keys(spaces)) {
		file := filepath.Join(w.dir, fmt.Sprintf("dump%d", i))
		defer func() { err = errors.Join(err, os.RemoveAll(file)) }()
		d, errStart := startDump(spaces[name], file)
		if errStart != nil {
			err = errStart
			break
		}
		dumps[name] = d
	}
	if err == nil {
		err = do()
	}
	seen := map[string]map[packet]int64{}
	for name, d := range dumps {
		var errEnd error
		seen[name], errEnd = d.end()
		err = errors.Join(err, errEnd)
	}
	if err != nil {
		return a, err
	}
	return apart(dumpedConnections(seen["client"], seen[plain]), dumpedConnections(seen["client"], seen[planted]))
}
