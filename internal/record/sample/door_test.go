package sample

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func everywhere(v any, text string) any {
	switch x := v.(type) {
	case string:
		return x + text
	case []any:
		for i := range x {
			x[i] = everywhere(x[i], text)
		}
	case map[string]any:
		for k, e := range x {
			x[k] = everywhere(e, text)
		}
		for _, m := range []string{"facts", "sysctls", "mitigations"} {
			if named, ok := x[m].(map[string]any); ok {
				named["key"+text] = text
			}
		}
	}
	return v
}

// Text of a file must not move a terminal's cursor, change text direction or hide.
func TestReadMakesTextPrintable(t *testing.T) {
	const hostile = "é漢🙂\x1b[2J\a\r\u009b1m\u202e\u200b\u2028\x7f\ufeff"
	const shown = `é漢🙂\x1b[2J\a\r\u009b1m\u202e\u200b\u2028\x7f\ufeff`
	var text strings.Builder
	for line := range strings.Lines(written(t, full(t))) {
		var record map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&record); err != nil {
			t.Fatal(err)
		}
		for _, r := range record {
			r, _ := r.(map[string]any)
			keep := map[string]any{"schema": r["schema"], "started": r["started"],
				"latency": r["latency"]}
			everywhere(r, hostile)
			for name, v := range keep {
				if v != nil {
					r[name] = v
				}
			}
		}
		b, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(b, '\n'))
	}
	f, err := Read(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	again := written(t, f)
	if n := strings.Count(again, strings.ReplaceAll(shown, `\`, `\\`)); n < 20 {
		t.Errorf("%d texts are shown", n)
	}
	for _, r := range again {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Errorf("%U was read", r)
		}
	}
	if at := strings.Index(strings.ReplaceAll(again, `\\`, ""), `\`); at >= 0 {
		t.Errorf("an escape is left: %.40s", again[at:])
	}
	if second, err := Read(strings.NewReader(again)); err != nil || written(t, second) != again {
		t.Errorf("read again it differs: %v", err)
	}
}

func TestReadKeepsLinesWhereTheyBelong(t *testing.T) {
	f := full(t)
	f.Visits[0].Output = &Output{Server: "one\ntwo\tthree\n", Client: "a\x1b\n"}
	f.Visits[0].Failure = "it failed\nbridge 1.00 better"
	f.Header.Plan.Loads[0] = Load{Kind: "chat", Options: ChatOptions{Prompt: "a\nb\a"}}
	got, err := Read(strings.NewReader(written(t, f)))
	if err != nil {
		t.Fatal(err)
	}
	v, o := got.Visits[0], got.Header.Plan.Loads[0].Options
	if v.Output.Server != "one\ntwo\tthree\n" || v.Output.Client != "a\\x1b\n" ||
		o != any(ChatOptions{Prompt: "a\nb\\a"}) {
		t.Errorf("%+v, %+v", v.Output, o)
	}
	if v.Failure != `it failed\nbridge 1.00 better` {
		t.Errorf("failure %q", v.Failure)
	}
}

// Files before 0.2.0 may have negative figures.
func TestReadRefusesNegativeMetrics(t *testing.T) {
	f := full(t)
	f.Visits[0].Values = map[string]float64{"a": 1, "rate": -3}
	f.Visits[1].Values = map[string]float64{"a": 0, "rate": 3}
	got, err := Read(strings.NewReader(written(t, f)))
	if err != nil || got.Visits[0].Failure != "metric rate: -3 is negative" ||
		got.Visits[1].Failure != "" {
		t.Errorf("%q, %q, %v", got.Visits[0].Failure, got.Visits[1].Failure, err)
	}
}
