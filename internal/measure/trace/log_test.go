package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// record is a log as a file keeps it: one line of JSON, and a line for each event.
type record struct {
	Cell    Cell `json:"-"`
	Log     Log  `json:"-"`
	Slices  []Slice
	Missing []string
	Client  int
	Server  int
	Relays  []int
	Copiers []int `json:",omitempty"`
	UDP     bool
	Hops    []string
	Devices []recordedDevice
}

type recordedDevice struct {
	NetNS, Index      uint32
	Kind, Name, Where string
}

var fields = []string{"ptr", "seq", "dev", "ns", "len", "tid", "pid", "from", "to"}

func valuesOf(e *kernel.Event) []int64 {
	return []int64{int64(e.Ptr), int64(e.Seq), int64(e.Dev), int64(e.NetNS), int64(e.Len),
		int64(e.TID), int64(e.PID), int64(e.Source), int64(e.Dest)}
}

func set(e *kernel.Event, values []int64) {
	e.Ptr, e.Seq, e.Dev = uint64(values[0]), uint32(values[1]), uint32(values[2])
	e.NetNS, e.Len, e.TID = uint32(values[3]), int32(values[4]), uint32(values[5])
	e.PID, e.Source, e.Dest = uint32(values[6]), uint16(values[7]), uint16(values[8])
}

// writeEvent writes a line such as "1200 0 net_dev_queue ptr=3 seq=17 len=1".
func writeEvent(w io.Writer, e kernel.Event) {
	fmt.Fprint(w, e.TS, " ", e.CPU, " ", strings.ReplaceAll(names[e.Kind], " ", "-"))
	for i, v := range valuesOf(&e) {
		if v != 0 {
			fmt.Fprintf(w, " %s=%d", fields[i], v)
		}
	}
	fmt.Fprintln(w)
}

func parseEvent(line string) (e kernel.Event, err error) {
	words := strings.Fields(line)
	if len(words) < 3 {
		return e, fmt.Errorf("a line %q", line)
	}
	if e.TS, err = strconv.ParseInt(words[0], 10, 64); err != nil {
		return e, err
	}
	cpu, err := strconv.ParseUint(words[1], 10, 16)
	if err != nil {
		return e, err
	}
	e.CPU = uint16(cpu)
	for kind, name := range names {
		if strings.ReplaceAll(name, " ", "-") == words[2] {
			e.Kind = kind
		}
	}
	if e.Kind == 0 {
		return e, fmt.Errorf("no kind %q", words[2])
	}
	values := valuesOf(&e)
	for _, w := range words[3:] {
		name, text, _ := strings.Cut(w, "=")
		i := slices.Index(fields, name)
		if i < 0 {
			return e, fmt.Errorf("no field %q", name)
		}
		if values[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return e, err
		}
	}
	set(&e, values)
	return e, nil
}

func (r *record) add(e kernel.Event) {
	for len(r.Log.CPUs) <= int(e.CPU) {
		r.Log.CPUs = append(r.Log.CPUs, nil)
	}
	r.Log.CPUs[e.CPU] = append(r.Log.CPUs[e.CPU], e)
}

func (r *record) follow() *sample.Trace { return Follow(r.Log, r.Cell, r.Slices) }

func (r *record) write(t *testing.T, file string) {
	t.Helper()
	r.Missing, r.Client, r.Server = r.Log.Missing, r.Cell.Client, r.Cell.Server
	r.Copiers = r.Cell.Copiers
	r.Relays, r.UDP, r.Hops = r.Cell.Relays, r.Cell.UDP, r.Cell.Hops
	for d, l := range r.Cell.Devices {
		r.Devices = append(r.Devices, recordedDevice{d.NetNS, d.Index, l.Kind, l.Name, l.Where})
	}
	slices.SortFunc(r.Devices, func(a, b recordedDevice) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err := json.NewEncoder(z).Encode(r); err != nil {
		t.Fatal(err)
	}
	for _, events := range r.Log.CPUs {
		for _, e := range events {
			writeEvent(z, e)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readRecord(t *testing.T, file string) *record {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	r := &record{}
	for lines.Scan() {
		if r.Client == 0 {
			if err := json.Unmarshal(lines.Bytes(), r); err != nil {
				t.Fatal(err)
			}
			continue
		}
		e, err := parseEvent(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		r.add(e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	r.Log.Missing = r.Missing
	r.Cell = Cell{Client: r.Client, Server: r.Server, Relays: r.Relays,
		Copiers: r.Copiers, UDP: r.UDP, Hops: r.Hops, Devices: map[Device]sample.Link{}}
	for _, d := range r.Devices {
		r.Cell.Devices[Device{d.NetNS, d.Index}] = sample.Link{Kind: d.Kind, Name: d.Name,
			Where: d.Where}
	}
	return r
}
