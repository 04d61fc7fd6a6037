package published

import (
	"strings"
	"testing"
)

func TestEmbeddedRows(t *testing.T) {
	rows, err := Rows()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 103 {
		t.Errorf("%d rows, want 103", len(rows))
	}
	sources := map[string]bool{}
	for _, r := range rows {
		sources[r.Study] = true
		if _, ok := studyOf(r.Study); !ok {
			t.Errorf("no study %q", r.Study)
		}
	}
	if len(sources) != 5 || len(studies) != 5 {
		t.Errorf("%d sources, %d studies, want 5 of each", len(sources), len(studies))
	}
}

const head = "source,year,mode,placement,load,shape,metric,value,unit,note\n"

func TestParse(t *testing.T) {
	const good = "a,2014,host,same machine,bulk,,throughput,9.5,MB/s,\n"
	for _, tt := range []struct {
		name, text, wrong string
	}{
		{"good", head + good, ""},
		{"range", head + strings.Replace(good, "9.5", "200-300", 1), ""},
		{"quoted", head + strings.Replace(good, "MB/s,", `MB/s,"a, b"`, 1), ""},
		{"empty", "", "published data: EOF"},
		{"other-columns", "source,year\na,2014\n", "published data: record on line 1: wrong " +
			"number of fields"},
		{"renamed-column", strings.Replace(head, "unit", "units", 1) + good, `published data: ` +
			`columns ["source" "year" "mode" "placement" "load" "shape" "metric" "value" ` +
			`"units" "note"], want ["source" "year" "mode" "placement" "load" "shape" "metric" ` +
			`"value" "unit" "note"]`},
		{"short-row", head + "a,2014,host\n", "published data: record on line 2: wrong number " +
			"of fields"},
		{"mode", head + strings.Replace(good, "host", "hosts", 1),
			`published data: line 2: unknown mode "hosts"`},
		{"placement", head + strings.Replace(good, "same machine", "the moon", 1),
			`published data: line 2: unknown placement "the moon"`},
		{"load", head + strings.Replace(good, "bulk", "udp", 1),
			`published data: line 2: unknown load "udp"`},
		{"metric", head + strings.Replace(good, "throughput", "speed", 1),
			`published data: line 2: unknown metric "speed"`},
		{"no-source", head + strings.TrimPrefix(good, "a"), "published data: line 2: no source"},
		{"year", head + strings.Replace(good, "2014", "14", 1),
			`published data: line 2: year "14"`},
		{"no-unit", head + strings.Replace(good, "MB/s", "", 1), "published data: line 2: no " +
			"unit"},
		{"no-number", head + strings.Replace(good, "9.5", "fast", 1),
			`published data: line 2: value "fast": not a number that can have been measured`},
		{"negative", head + strings.Replace(good, "9.5", "-9.5", 1),
			`published data: line 2: value "": not a number that can have been measured`},
		{"infinite", head + strings.Replace(good, "9.5", "Inf", 1),
			`published data: line 2: value "Inf": not a number that can have been measured`},
		{"nan", head + strings.Replace(good, "9.5", "NaN", 1),
			`published data: line 2: value "NaN": not a number that can have been measured`},
		{"falling-range", head + strings.Replace(good, "9.5", "300-200", 1),
			`published data: line 2: range "300-200" does not rise`},
		{"too-many", head + strings.Repeat(good, maxRows+1), "published data: line 10002: " +
			"more than 10000 rows"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(strings.NewReader(tt.text))
			if (err == nil) != (tt.wrong == "") ||
				err != nil && err.Error() != tt.wrong {
				t.Errorf("got %v, want %q", err, tt.wrong)
			}
		})
	}
}

// Rows that pass can be compared, and give no invalid ratio.
func FuzzParse(f *testing.F) {
	f.Add(string(data))
	for _, name := range Names() { // a fuzzer mutates small inputs best
		for _, l := range strings.Split(string(data), "\n") {
			if strings.HasPrefix(l, name) {
				f.Add(head + l + "\n")
				break
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := parse(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, r := range rows {
			if s, ok := studyOf(r.Study); ok {
				_, _ = s.ours(r)
			}
		}
	})
}
