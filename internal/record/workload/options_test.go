package workload

import (
	"encoding/json"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestLoadJSON(t *testing.T) {
	seen := map[string]bool{}
	for _, text := range []string{
		`{"kind":"bulk","streams":4,"write":4096,"reverse":true,"bidir":true,"bytes":100,"send":"zerocopy","nodelay":"off","warmup_s":0.1,"window_s":0.25,"slice_s":0.004}`,
		`{"kind":"bulk","streams":1,"warmup_s":0,"window_s":0}`,
		`{"kind":"bulk-reverse","streams":1,"reverse":true,"warmup_s":0.1,"window_s":0.25}`,
		`{"kind":"rr","streams":2,"write":9,"request":1,"reply":2,"rate":1000,"beside":true,"nodelay":"on","warmup_s":0.05,"window_s":0.25}`,
		`{"kind":"crr","streams":1,"request":1,"reply":1,"nodelay":"on","warmup_s":0.05,"window_s":0.25}`,
		`{"kind":"udp","streams":1,"rate":500000000,"size":1400,"batch":8,"gso":true,"warmup_s":0.65,"window_s":0.25}`,
		`{"kind":"udp-rr","request":1,"reply":2,"warmup_s":0.05,"window_s":0.25}`,
		`{"kind":"stream","streams":1,"tokens":200,"pace":50,"nodelay":"off","warmup_s":0.1,"window_s":4.1}`,
		`{"kind":"query","request":100,"reply":1024,"queries":20,"nodelay":"on","warmup_s":0.05,"window_s":0.25}`,
		`{"kind":"exec","program":{"recipe":"iperf3","server":"s","client":"c","ready":"tcp","metrics":[{"name":"rate","scale":1,"pattern":"(.)"}],"seconds":1,"timeout_s":9},"warmup_s":0,"window_s":1}`,
		`{"kind":"exec","program":{"server":"s","client":"c","ready":"{}","seconds":1,"timeout_s":9},"warmup_s":0,"window_s":1}`,
		`{"kind":"batch","streams":1,"tokens":64,"requests":2,"prompt":"a\nb","warmup_s":0,"window_s":2}`,
		`{"kind":"chat","streams":1,"tokens":64,"requests":2,"prompt":"a\nb","stall_s":0.2,"warmup_s":0,"window_s":2}`,
		`{"kind":"sql","streams":2,"queries":20,"sql":"select 1","warmup_s":0.5,"window_s":1}`,
		`{"kind":"request","asks":"PING","warmup_s":0.03,"window_s":0.2}`,
		// bulk's options
		`{"kind":"of a later toll","streams":2,"reverse":true,"warmup_s":0.5,"window_s":1}`,
	} {
		var l sample.Load
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		seen[l.Kind] = true
		if got, err := json.Marshal(l); err != nil || string(got) != text {
			t.Errorf("%s\nwas read and written as\n%s (%v)", text, got, err)
		}
		if pointed, err := json.Marshal([]*sample.Load{&l}); err != nil ||
			string(pointed) != "["+text+"]" {
			t.Errorf("%s (%v)", pointed, err)
		}
		var again sample.Load
		if err := json.Unmarshal([]byte(text), &again); err != nil || l.Kind != Exec && again != l {
			t.Errorf("%+v and %+v are not equal (%v)", l, again, err)
		}
	}
	for _, w := range all {
		if !seen[w.Name] {
			t.Errorf("%s is not among them", w.Name)
		}
	}
}

func TestOptionsOfAnotherLoad(t *testing.T) {
	var l sample.Load
	if err := json.Unmarshal([]byte(`{"kind":"rr","reverse":true,"tokens":3}`), &l); err != nil {
		t.Fatal(err)
	}
	if BulkOf(l) != (sample.BulkOptions{}) || StreamOf(l) != (sample.StreamOptions{}) {
		t.Errorf("%+v", l)
	}
}

func TestReadOptionsRefuses(t *testing.T) {
	for _, text := range []string{
		`{"kind":"bulk","reverse":1}`, `{"kind":"stream","tokens":"many"}`,
		`{"kind":"exec","program":[]}`, `{"kind":3}`, `{"kind":"rr","window_s":"1"}`, `[]`,
	} {
		var l sample.Load
		if err := json.Unmarshal([]byte(text), &l); err == nil {
			t.Errorf("%s was read as %+v", text, l)
		}
	}
}
