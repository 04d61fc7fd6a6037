package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Bulk is TCP streams at full speed.
const Bulk = "bulk"

// BulkOf returns the load's options, or the zero value for other kinds.
func BulkOf(l sample.Load) sample.BulkOptions { return options[sample.BulkOptions](l) }

func bulkFill(l *sample.Load) {
	set(l, func(o *sample.BulkOptions) { o.Write = cmp.Or(o.Write, DefaultWrite) })
}

// Metrics that depend on options of bulk.
const (
	// The throughput to the server and to the client, of a load in both directions.
	ThroughputOut  = "throughput_out"
	ThroughputBack = "throughput_back"
	// From the common start to the last byte's arrival.
	CompletionTime = "completion_time"
	// The share of the zero-copy sends that the kernel copied.
	ZerocopyCopied = "zerocopy_copied"
	// In a mesh: the share of retransmitted segments.
	RetransmissionRate = "retransmission_rate"
)

var bulk = Workload{
	About: "A TCP stream: as many bytes as get through, from the client to the server, on one connection or several (--streams). " +
		"It shows the throughput of a mode and what a byte costs in CPU time: backups, downloads, replication.",
	Name: Bulk, Gist: "TCP stream", Crowds: true, Flags: bulkFlags, fill: bulkFill,
	time: bulkTime, notSliced: bulkNotSliced, threads: bulkThreads,
	Primary: Throughput, Noun: "throughput", Rate: Throughput, apart: "throughput to the server",
	words: bulkWords, outline: bulkOutline,
	figures: (*Figures).transfer, work: moved,
	doubts: bulkDoubts, listed: Last,
}

// BulkReverse is bulk from server to client: a load of its own, so that one run can have both.
const BulkReverse = "bulk-reverse"

var bulkReverse = reversed(bulk)

func reversed(w Workload) Workload {
	w.About = "bulk from the server to the client, as a load of its own: one run can have both directions (--load bulk,bulk-reverse). " +
		"What a container sends leaves by other devices than what it gets, which other settings decide."
	w.Name, w.Gist = BulkReverse, "the same from the server to the client"
	w.apart = "throughput to the client"
	w.Flags = withoutFlags(bulkFlags, "bidir")
	w.time = func(l *sample.Load, wire sample.Wire) {
		bulkTime(l, wire)
		set(l, func(o *sample.BulkOptions) { o.Reverse = true })
	}
	w.fill = func(l *sample.Load) {
		bulkFill(l)
		set(l, func(o *sample.BulkOptions) { o.Reverse = true })
	}
	return w
}

func withoutFlags(all []Flag, names ...string) []Flag {
	return slices.DeleteFunc(slices.Clone(all), func(f Flag) bool {
		return slices.Contains(names, f.Name)
	})
}

func bulkWords(l sample.Load) string {
	o := BulkOf(l)
	text := "bulk, " + units.Plural(l.Streams, "stream")
	if o.Reverse {
		text += ", server to client"
	}
	if o.Bidir {
		text += ", both ways"
	}
	if o.Bytes > 0 {
		text += ", " + units.Bytes(o.Bytes) + " each"
	}
	if o.Write > 0 {
		text += ", writes of " + units.Bytes(int64(o.Write))
	}
	switch o.Send {
	case SendZerocopy:
		text += ", zero-copy (copied if local)"
	case SendFile:
		text += ", sendfile"
	}
	return text
}

const maxTransfer = 1 << 40

// Methods of sending other than by copying.
const (
	SendZerocopy = "zerocopy" // Linux 4.14
	SendFile     = "sendfile" // from a file in memory
)

// DefaultWrite is iperf3's, in bytes.
const DefaultWrite = 128 << 10

const sendCopy = "copy"

var senders = []string{sendCopy, SendZerocopy, SendFile}

var bulkFlags = []Flag{
	{Name: "streams", Help: "connections", Value: Whole{
		1, 1, maxStreams, func(l *sample.Load, n int) {
			l.Streams = n
		}}},
	writeFlag(func(o *sample.BulkOptions, n int) { o.Write = n }),
	{Name: "bidir", Help: "both ways at once on every stream", NotOfCrowds: true,
		Value: Toggle{func(l *sample.Load, on bool) {
			set(l, func(o *sample.BulkOptions) { o.Bidir = on })
		}}},
	{Name: "bytes",
		Help:        "move this many bytes on each stream, such as 100M, instead of filling the window",
		NotOfCrowds: true,
		Value: Size{0, 1, maxTransfer, func(l *sample.Load, n int64) {
			set(l, func(o *sample.BulkOptions) { o.Bytes = n })
		}}},
	{Name: "send", Help: "how to send: " + strings.Join(senders, ", "),
		Value: Choice{What: "sender", Preset: sendCopy, Words: senders,
			Put: func(l *sample.Load, word string) {
				if word == sendCopy {
					word = ""
				}
				set(l, func(o *sample.BulkOptions) { o.Send = word })
			}}},
	nodelayFlag,
}

func bulkWarmup(w sample.Wire) float64 { return 0.1 + slowStart*w.RoundTrip() }

func bulkTime(l *sample.Load, w sample.Wire) {
	if BulkOf(*l).Bytes == 0 {
		l.Warmup = bulkWarmup(w)
	}
}

func bulkNotSliced(l sample.Load) string {
	if BulkOf(l).Bytes > 0 {
		return "--bytes: a transfer has no fixed duration"
	}
	return ""
}

func bulkThreads(l sample.Load) int {
	if BulkOf(l).Bidir {
		return 2 * max(1, l.Streams)
	}
	return max(1, l.Streams)
}

func bulkOutline(l sample.Load) string {
	if BulkOf(l).Bytes == 0 {
		return ""
	}
	if BulkOf(l).Bytes == 1 {
		return "bulk: 1 byte on each stream, however long it takes"
	}
	return fmt.Sprintf("bulk: %s bytes on each stream, however long they take",
		units.FormatSize(BulkOf(l).Bytes))
}

// Counts of a sender with MSG_ZEROCOPY in the window: completed sends, and those that the kernel
// copied. (If the kernel joins the reports of several sends, the flag of the first counts.)
const (
	CountZerocopy       = "zerocopy_sends"
	CountZerocopyCopied = "zerocopy_copied"
)

func moved(v sample.Visit, l sample.Load) float64 {
	if BulkOf(l).Bidir {
		return float64(v.Client.Received + v.Server.Received)
	}
	return received(v, l)
}

func (f *Figures) transfer(v sample.Visit, l sample.Load) {
	o := BulkOf(l)
	if o.Bidir {
		out, back := perSecond(v.Server.Received, v.Server.Window),
			perSecond(v.Client.Received, v.Client.Window)
		f.bytes(v, out+back)
		f.set(ThroughputOut, bitsPerByte*out)
		f.set(ThroughputBack, bitsPerByte*back)
	} else {
		r := receiver(v, l)
		f.bytes(v, float64(r.Received)/r.Window)
		if r.Received == 0 && r.Window > 0 && sender(v, l).TCP.Resent > 0 { // TCP waited all the time
			f.set(Throughput, 0)
		}
	}
	if o.Bytes > 0 {
		f.set(CompletionTime, completion(v, l))
		// all CPU time is this transfer's, however long the meters ran
		if f.busy > 0 && moved(v, l) > 0 {
			f.set(CPUPerByte, f.busy/moved(v, l))
		}
	}
	sends, copied := 0.0, 0.0
	for _, p := range []sample.Party{v.Client, v.Server} {
		sends += float64(p.Counts[CountZerocopy])
		copied += float64(p.Counts[CountZerocopyCopied])
	}
	if o.Send == SendZerocopy {
		f.set(ZerocopyCopied, copied/sends)
	}
}

func completion(v sample.Visit, l sample.Load) float64 {
	if BulkOf(l).Bidir {
		return max(v.Client.Window, v.Server.Window)
	}
	return receiver(v, l).Window
}

// copiedShare is the largest share of copied sends that causes no warning.
const copiedShare = 0.5

func bulkDoubts(s Seen) []Doubt {
	if s.Median(ZerocopyCopied) <= copiedShare {
		return nil
	}
	return []Doubt{{Code: Copied}}
}
