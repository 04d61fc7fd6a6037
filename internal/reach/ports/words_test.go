package ports

import (
	"fmt"
	"slices"
	"strings"
)

// coded has codes and values in place of sentences.
type coded struct{}

func (w coded) Reason(r Reason) string {
	return parts(string(r.Code), r.Of, r.By, r.At, r.Text, count(r.N), w.Cause(r.Lost))
}

func (coded) Cause(l Loss) string {
	reply := ""
	if l.Reply {
		reply = "reply"
	}
	return parts(string(l.Code), reply, l.Where, l.Table, l.Chain, count(l.Number), l.Rule, l.Device,
		l.Other, l.Of, l.At, l.Key)
}

func parts(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), " ")
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// judged returns the report with codes for sentences.
func judged(f *Facts, port uint16) *Report {
	r := Judge(f, port)
	r.Say(coded{})
	return r
}
