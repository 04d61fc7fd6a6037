package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/load"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// optionFlags are the options of bulk and rr beyond streams, direction and
// sizes of messages.
type optionFlags struct {
	write, bytes, send string // as given
	bidir              bool
	connections        int
	rate               float64
	underLoad          bool

	writeSize, count int64 // as understood; 0: not given
}

func (f *optionFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.write, "write-size", "", "bulk: bytes given to the kernel at once, such as 4k (default 128k)")
	fl.BoolVar(&f.bidir, "bidir", false, "bulk: both ways at once on every stream")
	fl.StringVar(&f.bytes, "bytes", "", "bulk: move so many bytes on each stream, such as 100M, instead of filling the window")
	fl.StringVar(&f.send, "send", sendCopy, "bulk: how to send: "+strings.Join(sends, ", "))
	fl.IntVar(&f.connections, "connections", 1, "rr, crr: connections at one time, each with one request under way")
	fl.Float64Var(&f.rate, "rate", 0, "rr: requests a second of all connections together, due whatever became of those before (default as fast as they are answered)")
	fl.BoolVar(&f.underLoad, "under-load", false, "rr: beside a bulk stream to the server")
}

// sendCopy is the way to send that needs no option.
const sendCopy = "copy"

var sends = []string{sendCopy, load.SendZerocopy, load.SendFile}

const (
	maxTransfer = 1 << 40 // of --bytes
	maxRate     = 1e7     // of --rate
	leastSends  = 10      // requests in a window
)

// check reads the options, of which reverse says that bulk has the other
// direction.
func (f *optionFlags) check(reverse bool) (err error) {
	for _, n := range []struct {
		flag, text string
		top        int64
		to         *int64
	}{{"write-size", f.write, maxBytes, &f.writeSize}, {"bytes", f.bytes, maxTransfer, &f.count}} {
		if n.text == "" {
			continue
		}
		if *n.to, err = parseSize(n.text); err == nil && (*n.to < 1 || *n.to > n.top) {
			err = fmt.Errorf("must be from 1 to %s", formatSize(n.top))
		}
		if err != nil {
			return usage(fmt.Errorf("--%s %s: %w", n.flag, n.text, err), "a number of bytes, with k, M or G for powers of 1024: --"+n.flag+" 64k")
		}
	}
	if f.connections < 1 || f.connections > maxStreams {
		return usage(fmt.Errorf("--connections %d: must be from 1 to %d", f.connections, maxStreams), "")
	}
	if math.IsNaN(f.rate) || f.rate < 0 || f.rate > maxRate {
		return usage(fmt.Errorf("--rate %g: must be from 0 to %g requests a second", f.rate, maxRate), "")
	}
	if f.bidir && reverse {
		return usage(errors.New("--bidir goes both ways, --reverse only one"), "leave one of them out")
	}
	if _, err := parseOne(f.send, closed("sender", sends...)); err != nil {
		return err
	}
	if err := load.CanSend(f.sending()); err != nil {
		return &failure{exitNothing, fmt.Errorf("--send %s: %w", f.send, err), "leave --send out, or use a kernel that has it"}
	}
	return nil
}

// sending is --send as loads have it.
func (f *optionFlags) sending() string {
	if f.send == sendCopy {
		return ""
	}
	return f.send
}

// fits refuses a rate of which a window holds too few requests.
func (f *optionFlags) fits(window float64) error {
	if f.rate <= 0 || f.rate*window >= leastSends {
		return nil
	}
	return usage(fmt.Errorf("--rate %g: fewer than %d requests would be due in a window of %gs", f.rate, leastSends, window),
		fmt.Sprintf("--window %gs", math.Ceil(leastSends/f.rate)))
}

// bulk puts the options on a bulk load.
func (f *optionFlags) bulk(l sample.Load) sample.Load {
	l.Write, l.Bidir, l.Bytes, l.Send = int(f.writeSize), f.bidir, f.count, f.sending()
	if l.Bytes > 0 {
		l.Warmup = 0
	}
	return l
}

// rr puts the options on an rr load. Beside a stream its warm-up is that
// stream's.
func (f *optionFlags) rr(l sample.Load, w sample.Wire) sample.Load {
	if f.connections > 1 {
		l.Streams = f.connections
	}
	l.Rate, l.Beside = f.rate, f.underLoad
	if l.Beside {
		l.Write, l.Warmup = int(f.writeSize), bulkWarmup(w)
	}
	return l
}

// crowd refuses options that a crowd does not have: it is counted by a watcher,
// at its servers, for as long as the window is.
func (f *optionFlags) crowd() error {
	for _, o := range []struct {
		flag  string
		given bool
	}{{"bidir", f.bidir}, {"bytes", f.count > 0}, {"rate", f.rate > 0}, {"under-load", f.underLoad}} {
		if o.given {
			return usage(fmt.Errorf("toll scale has no --%s: a crowd's load fills the window, one way", o.flag), "toll compare --"+o.flag)
		}
	}
	return nil
}

// takeTurns lengthens warm-up and window as a crowd's are, if an end's threads
// are so many that they must wait for a CPU in turn.
func takeTurns(l *sample.Load) {
	n := threads(*l)
	if n <= load.ManyThreads || l.Bytes > 0 {
		return
	}
	const windowTurns = 3
	turns := turn(machine.Machine{}) * float64(n)
	l.Warmup += turns
	l.Window = max(l.Window, windowTurns*turns)
}

func threads(l sample.Load) int {
	return load.Options{Spec: load.Spec{Kind: l.Kind, Streams: l.Streams, Bidir: l.Bidir, Beside: l.Beside}}.Threads()
}

// threads are those of an end, of the load that has most of them.
func (f *loadFlags) threads() int {
	most := 1
	for _, l := range []sample.Load{bulkLoad(f, sample.Wire{}), rrLoad(f, sample.Wire{}), crrLoad(f, sample.Wire{})} {
		most = max(most, threads(l))
	}
	if slices.Contains(f.kinds, streaming) {
		most = max(most, load.StreamLoops(f.stream.sessions))
	}
	return most
}

// sizeUnits are the powers of 1024 that a size may end in.
const sizeUnits = "kMGT"

// parseSize reads a number of bytes: 1500, 64k, 4M, 1G.
func parseSize(s string) (int64, error) {
	const (
		step = 1024
		bits = 63
	)
	num, unit := s, int64(1)
	if n := len(s); n > 0 {
		if i := strings.IndexByte(strings.ToUpper(sizeUnits), s[n-1]&^('a'-'A')); i >= 0 && (s[n-1] < '0' || s[n-1] > '9') {
			num = s[:n-1]
			for range i + 1 {
				unit *= step
			}
		}
	}
	x, err := strconv.ParseUint(num, 10, bits)
	if err != nil || x > uint64(math.MaxInt64/unit) {
		return 0, errors.New("not a number of bytes")
	}
	return int64(x) * unit, nil
}

// formatSize is the shortest text that parseSize reads as n.
func formatSize(n int64) string {
	const step = 1024
	unit := ""
	for i := 0; i < len(sizeUnits) && n >= step && n%step == 0; i++ {
		n, unit = n/step, sizeUnits[i:i+1]
	}
	return strconv.FormatInt(n, 10) + unit
}
