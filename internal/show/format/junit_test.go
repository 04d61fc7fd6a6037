package format

import (
	"bytes"
	"encoding/xml"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// TestJUnit reads what it wrote with an XML parser, hostile texts among it.
func TestJUnit(t *testing.T) {
	hostile := "a]]> <b attr=\"x\" y='z'> & \x00\x1b[31m\xff\ttab\nline ✓"
	d := document.Document{Kind: document.PortList, Conditions: []document.Condition{
		{Text: "other machines reach 22/tcp", Holds: document.Good},
		{Text: hostile, Holds: document.Bad, Why: hostile},
		{Text: "containers reach 53/udp", Holds: document.Doubtful, Why: "a rule cannot be copied"},
	}}
	var b bytes.Buffer
	f, _ := Find("junit")
	if err := f.Write(&b, d, Options{}); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	s := got.Suite
	if s.Tests != 3 || s.Failures != 1 || s.Skipped != 1 || s.Errors != 0 || len(s.Cases) != 3 {
		t.Fatalf("%+v", s)
	}
	const safe = "a]]> <b attr=\"x\" y='z'> & \ufffd\ufffd[31m\ufffd\ttab\nline ✓"
	if c := s.Cases[0]; c.Name != d.Conditions[0].Text || c.Failure != nil || c.Skipped != nil {
		t.Errorf("a condition that holds: %+v", c)
	}
	if c := s.Cases[1]; c.Name != safe || c.Failure == nil || c.Failure.Message != safe ||
		c.Skipped != nil {
		t.Errorf("a condition that fails: %+v", c)
	}
	if c := s.Cases[2]; c.Failure != nil || c.Skipped == nil ||
		c.Skipped.Message != "a rule cannot be copied" {
		t.Errorf("a condition that is not certain: %+v", c)
	}
}
