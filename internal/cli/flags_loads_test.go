package cli

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// sending returns a command's flags of what is sent, parsed.
func sending(t *testing.T, args ...string) (*traffic, *pflag.FlagSet) {
	t.Helper()
	var f traffic
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.addLoads(fl, loadNames, "bulk", "rr")
	f.addWindow(fl)
	f.slicing.add(fl)
	if err := fl.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &f, fl
}

func made(t *testing.T, args ...string) ([]sample.Load, error) {
	t.Helper()
	f, fl := sending(t, args...)
	loads, _, err := f.loadsOver(fl, sample.Wire{})
	return loads, err
}

// Loads without options look as they did before options existed, in files and dry runs, and in
// their number of threads.
func TestDefaultLoads(t *testing.T) {
	got, err := made(t, "--load", strings.Join(loadNames, ","))
	want := []sample.Load{
		{Kind: "bulk", Streams: 1, Options: sample.BulkOptions{}, Warmup: 0.1, Window: 0.25},
		{Kind: "bulk-reverse", Streams: 1, Options: sample.BulkOptions{Reverse: true}, Warmup: 0.1,
			Window: 0.25},
		{Kind: "rr", Options: sample.RROptions{Messages: sample.Messages{Request: 1, Reply: 1}},
			Warmup: 0.05, Window: 0.25},
		{Kind: "crr", Streams: 1, Options: sample.Messages{Request: 1, Reply: 1}, Warmup: 0.05,
			Window: 0.25},
		{Kind: "udp", Streams: 1, Options: sample.UDPOptions{Size: 1400, Batch: 1}, Warmup: 0.65,
			Window: 0.25},
		{Kind: "udp-rr", Options: sample.Messages{Request: 1, Reply: 1}, Warmup: 0.05,
			Window: 0.25},
		{Kind: "stream", Streams: 1, Options: sample.StreamOptions{Tokens: 200, Pace: 50},
			Warmup: 0.1, Window: 4.1},
		{Kind: "query", Options: sample.QueryOptions{
			Messages: sample.Messages{Request: 100, Reply: 1024}, Queries: 20}, Warmup: 0.05,
			Window: 0.25},
	}
	if err != nil || !reflect.DeepEqual(got, want) || plan.MostThreads(got) != 1 {
		t.Errorf("got %+v, %d threads, %v", got, plan.MostThreads(got), err)
	}
}

func TestFlagsOfLoads(t *testing.T) {
	for _, tt := range []struct {
		args    string
		want    sample.Load
		threads int
	}{
		{"bulk --streams 4", sample.Load{Streams: 4, Options: sample.BulkOptions{}}, 4},
		{"bulk --streams 4 --bidir", sample.Load{
			Streams: 4, Options: sample.BulkOptions{Bidir: true}}, 8},
		{"bulk-reverse --write-size 4K --send zerocopy --nodelay off",
			sample.Load{Streams: 1, Options: sample.BulkOptions{
				Write: 4096, Reverse: true, Send: "zerocopy"}, Nodelay: "off"}, 1},
		{"bulk --bytes 1M --send copy", sample.Load{
			Streams: 1, Options: sample.BulkOptions{Bytes: 1 << 20}}, 1},
		{"rr --connections 16 --rate 1000", sample.Load{
			Streams: 16, Options: sample.RROptions{
				Messages: sample.Messages{Request: 1, Reply: 1}, Rate: 1000}}, 16},
		{"rr --connections 1 --under-load --write-size 1k",
			sample.Load{Options: sample.RROptions{
				Messages: sample.Messages{Request: 1, Reply: 1}, Beside: true, Write: 1024}}, 2},
		{"crr --connections 3 --request 5", sample.Load{
			Streams: 3, Options: sample.Messages{Request: 5, Reply: 1}}, 3},
		{"udp --streams 2 --bitrate 1.5gbit --datagram 64 --batch 8 --gso",
			sample.Load{Streams: 2, Options: sample.UDPOptions{
				Rate: 1.5e9, Size: 64, Batch: 8, GSO: true}}, 2},
		{"udp --datagram 4K", sample.Load{Streams: 1,
			Options: sample.UDPOptions{Size: 4096, Batch: 1}}, 1},
		{"udp --datagram 4k", sample.Load{Streams: 1,
			Options: sample.UDPOptions{Size: 4096, Batch: 1}}, 1},
		{"rr --request 4K --reply 4k", sample.Load{
			Options: sample.RROptions{Messages: sample.Messages{Request: 4096, Reply: 4096}}}, 1},
		{"crr --request 4k --reply 4K", sample.Load{
			Streams: 1, Options: sample.Messages{Request: 4096, Reply: 4096}}, 1},
		{"query --request 4K --reply 64M", sample.Load{
			Options: sample.QueryOptions{Messages: sample.Messages{Request: 4096, Reply: 64 << 20},
				Queries: 20}}, 1},
		{"udp-rr --reply 9", sample.Load{Options: sample.Messages{Request: 1, Reply: 9}}, 1},
		{"stream --sessions 251 --tokens 10 --tokens-per-second 100 --nodelay on",
			sample.Load{Streams: 251, Options: sample.StreamOptions{Tokens: 10, Pace: 100},
				Nodelay: "on"}, 2},
		{"query --request 1 --queries 3", sample.Load{
			Options: sample.QueryOptions{Messages: sample.Messages{Request: 1, Reply: 1024},
				Queries: 3}}, 1},
	} {
		got, err := made(t, strings.Fields("--load "+tt.args)...)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %+v, %v", tt.args, got, err)
		}
		l := got[0]
		l.Kind, l.Warmup, l.Window = "", 0, 0
		if l != tt.want || plan.MostThreads(got) != tt.threads {
			t.Errorf("%s: got %+v, %d threads", tt.args, l, plan.MostThreads(got))
		}
	}
}

func TestSharedFlagsAgree(t *testing.T) {
	bounds := map[string]string{}
	for _, name := range loadNames {
		w, _ := workload.Find(name)
		for _, x := range w.Flags {
			v := newLoadFlag(x.Value).value
			said := fmt.Sprintf("%T", v)
			for _, absurd := range []string{"-1", "1e99"} {
				said += fmt.Sprint(", ", v.Set(absurd))
			}
			if was, ok := bounds[x.Name]; ok && was != said {
				t.Errorf("--%s of %s: %s, of others: %s", x.Name, name, said, was)
			}
			bounds[x.Name] = said
		}
	}
}

func TestRatesThatAreRefused(t *testing.T) {
	for rate, hint := range map[string]string{"0": "", "40": "", "39": "--window 1s",
		"0.5": "--window 20s"} {
		_, err := made(t, "--load", "rr", "--rate", rate)
		var f *failure
		if (err == nil) != (hint == "") || errors.As(err, &f) && f.Hint() != hint {
			t.Errorf("rate %s: %v", rate, err)
		}
	}
}

func TestCrowdsOptions(t *testing.T) {
	for _, args := range []string{"", "--rate 0", "--bidir=false", "--streams 3"} {
		f, fl := sending(t, strings.Fields(args)...)
		if err := f.loads.crowd(fl); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	for _, args := range []string{"--bidir", "--bytes 1", "--rate 1", "--under-load"} {
		f, fl := sending(t, strings.Fields(args)...)
		flag, _, _ := strings.Cut(args, " ")
		want := "toll scale has no " + flag + ": a crowd's load fills the window, in one direction"
		if err := f.loads.crowd(fl); err == nil || err.Error() != want {
			t.Errorf("%s: %v", args, err)
		}
	}
}
