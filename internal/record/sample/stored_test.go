package sample

import (
	"bytes"
	"os"
	"testing"
)

// Stored files are read, and their headers are written as they were.
// testdata/sliced.jsonl is of
//
//	toll compare bridge --tune mtu=1400 --load rr --rounds 1
//
// with the visits of one CPU placement only, and testdata/routes.jsonl of
//
//	toll run direct=127.0.0.1:18081 own=127.0.0.1:18081 --client 'curl -s http://{host}:{port}/' --rounds 2
func TestStoredFiles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cells int
		names [2]string // of the first and last cell
	}{
		{"run.jsonl", 10, [2]string{"host", "publish-proxy"}},
		{"sliced.jsonl", 10, [2]string{"host", "bridge"}},
		{"routes.jsonl", 3, [2]string{"direct", "own"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := os.ReadFile("testdata/" + tt.name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Read(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			cells := f.Header.Plan.Cells
			if f.Header.Schema != Schema || f.Truncated || len(f.Visits) == 0 ||
				len(cells) != tt.cells {
				t.Fatalf("%s with %d cells and %d visits, truncated: %t", f.Header.Schema,
					len(cells), len(f.Visits), f.Truncated)
			}
			if got := [2]string{cells[0].Name(), cells[len(cells)-1].Name()}; got != tt.names {
				t.Errorf("cells of %q", got)
			}
			for _, c := range cells {
				if _, ok := f.Header.PathOf(c); !ok || (c.Route == "") != (c.Mode != "") ||
					(c.Route == "") == f.Header.Plan.Foreign() {
					t.Errorf("%+v has a path: %t", c, ok)
				}
			}
			if !f.Header.Plan.IsBaseline(cells[0]) ||
				f.Header.Plan.IsBaseline(cells[len(cells)-1]) {
				t.Error("the first cell is the baseline, the last is not")
			}
			var again bytes.Buffer
			if err := NewWriter(&again).Header(f.Header); err != nil {
				t.Fatal(err)
			}
			first, _, _ := bytes.Cut(b, []byte{'\n'})
			if string(first)+"\n" != again.String() {
				t.Errorf("the header\n%s\nis written as\n%s", first, again.Bytes())
			}
			if cells[0] != f.Header.Plan.Cells[0] {
				t.Error("writing changed the header")
			}
		})
	}
}
