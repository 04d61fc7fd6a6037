package sample

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

const tracedLine = `{"visit":{"round":1,"cell":0,"elapsed_s":0,"witness":{"ok":true},"trace":` +
	`{"state":"traced","trips":9,"followed":9,"events":30,"slots":[2,5],"mid_mean_s":0.00005,` +
	`"segments":[{"part":"call","mid_mean_s":1e-6,"p99_s":2e-6,"share":1,"events":1,` +
	`"steps":["clock_gettime","tcp_sendmsg_locked"]`

// Times are whole nanoseconds in files.
func TestTraceIsReadAsWritten(t *testing.T) {
	want := &Trace{State: Traced, Trips: 9, Followed: 9, Events: 30, Slots: []int{2, 5},
		Totals: Times{50e-6, 60001e-9}, MidMean: 50e-6, Segments: []Segment{{
			SegmentKey: SegmentKey{Part: PartCall}, MidMeans: Times{1e-6, 353e-9}, MidMean: 1e-6,
			P99: 2e-6, Share: 1, Events: 1, Steps: [2]string{"clock_gettime",
				"tcp_sendmsg_locked"}}}}
	const line = tracedLine + `,"mid_means_ns":[1000,353]}],"totals_ns":[50000,60001]}}}`
	f, err := Read(strings.NewReader(okHeader + "\n" + line + "\n"))
	if err != nil || len(f.Visits) != 1 {
		t.Fatalf("%v, %+v", err, f)
	}
	if got := f.Visits[0].Trace; !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	var out bytes.Buffer
	if err := NewWriter(&out).Visit(f.Visits[0]); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "{\"visit\":{\"round\":1,\"cell\":0,\"at_s\":0,\"elapsed_s\":0,\"witness\":{\"ok\":true},\"trace\":{\"state\":\"traced\",\"trips\":9,\"followed\":9,\"events\":30,\"slots\":[2,5],\"totals_ns\":[50000,60001],\"mid_mean_s\":0.00005,\"segments\":[{\"part\":\"call\",\"mid_means_ns\":[1000,353],\"mid_mean_s\":0.000001,\"p99_s\":0.000002,\"share\":1,\"events\":1,\"steps\":[\"clock_gettime\",\"tcp_sendmsg_locked\"]}]}}}\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, bad := range []string{`,"mid_means_ns":[1]}],"totals_ns":[1,2]}}}`,
		`,"mid_means_ns":[1,-2]}],"totals_ns":[1,2]}}}`, `}],"totals_ns":[1]}}}`, `}]}}}`} {
		if _, err := Read(strings.NewReader(okHeader + "\n" + tracedLine + bad + "\n")); err == nil {
			t.Errorf("read %s", bad)
		}
	}
}

func TestTimesKeepTheirBits(t *testing.T) {
	in := Times{0, 1e-9, 353e-9, 12.345678901}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Times
	if err := json.Unmarshal(b, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%v of %s, %v", out, b, err)
	}
	if err := json.Unmarshal([]byte(`"5"`), &out); err == nil {
		t.Error("read a text as times")
	}
}
