package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/load"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// udpFlags are the flags of the loads over UDP.
type udpFlags struct {
	bitrate     string
	size, batch int
	gso         bool
}

func (f *udpFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.bitrate, "bitrate", "", "udp: rate of all flows together, such as 500mbit (default the highest that loses at most 0.1 %)")
	fl.IntVar(&f.size, "datagram", load.DefaultDatagram, "udp: bytes of a datagram's payload")
	fl.IntVar(&f.batch, "batch", 1, "udp: datagrams a system call (sendmmsg, recvmmsg)")
	fl.BoolVar(&f.gso, "gso", false, "udp: let the kernel cut and join datagrams (UDP_SEGMENT, UDP_GRO)")
}

// Bounds of --bitrate, in bit/s.
const (
	minBitrate = 1e3
	maxBitrate = 400e9
)

var errBitrate = errors.New("must be from 1kbit to 400gbit")

// parseBitrate reads a rate as `--wire rate=` does; "" is 0.
func parseBitrate(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	x, ok := sample.ParseRate(s, minBitrate, maxBitrate)
	if !ok {
		return 0, errBitrate
	}
	return x, nil
}

// checkUDP refuses what no datagram can be.
func (f *loadFlags) checkUDP() error {
	u := &f.udp
	if u.batch == 0 && u.size == 0 { // a command without these flags
		return nil
	}
	if _, err := parseBitrate(u.bitrate); err != nil {
		return usage(fmt.Errorf("--bitrate %q: %w", u.bitrate, err), "--bitrate 500mbit")
	}
	if u.size < load.MinDatagram || u.size > load.MaxDatagram {
		return usage(fmt.Errorf("--datagram %d: must be from %d to %d", u.size, load.MinDatagram, load.MaxDatagram), "")
	}
	if u.batch < 1 || u.batch > load.MaxBatch {
		return usage(fmt.Errorf("--batch %d: must be from 1 to %d", u.batch, load.MaxBatch), "")
	}
	if slices.Contains(f.kinds, "udp-rr") && max(f.request, f.reply) > load.MaxDatagram {
		return usage(fmt.Errorf("udp-rr: a datagram holds at most %d bytes", load.MaxDatagram), "a smaller --request or --reply, or --load rr")
	}
	return nil
}

// What the loads over UDP need of a warm-up, in seconds and round trips.
const (
	searchTime  = 0.65 // of a dozen steps and three to confirm what they found
	searchTrips = 36
	pacedTime   = 0.05
)

// udpLoad's warm-up holds the search for the highest rate.
func udpLoad(f *loadFlags, w sample.Wire) sample.Load {
	rate, _ := parseBitrate(f.udp.bitrate) // was checked
	l := sample.Load{Streams: f.streams, Rate: rate, Size: f.udp.size, Batch: f.udp.batch, GSO: f.udp.gso}
	l.Warmup = searchTime + searchTrips*w.RoundTrip()
	if rate > 0 {
		l.Warmup = pacedTime + settled*w.RoundTrip()
	}
	return l
}

func udpRRLoad(f *loadFlags, w sample.Wire) sample.Load {
	return sample.Load{Warmup: 0.05 + settled*w.RoundTrip(), Request: f.request, Reply: f.reply}
}
