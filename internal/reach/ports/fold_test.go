package ports

import (
	"fmt"
	"slices"
	"testing"
)

func TestFoldNames(t *testing.T) {
	var many []string
	for p := 3000; p <= 3350; p++ {
		many = append(many, fmt.Sprintf("%d/tcp", p))
		if p < 3003 {
			many = append(many, fmt.Sprintf("%d/udp", p))
		}
	}
	for _, x := range []struct{ names, want []string }{
		{nil, nil},
		{[]string{"80/tcp", "81/tcp"}, []string{"80/tcp", "81/tcp"}},
		{[]string{"80/tcp", "81/udp", "82/tcp"}, []string{"80/tcp", "81/udp", "82/tcp"}},
		{many, []string{"3000-3350/tcp", "3000-3002/udp"}},
		{[]string{"65533/tcp", "65534/tcp", "65535/tcp", "0/tcp"},
			[]string{"65533-65535/tcp", "0/tcp"}},
		{[]string{"1/tcp", "2/tcp", "3/tcp", "9/tcp", "web"},
			[]string{"1-3/tcp", "9/tcp", "web"}},
	} {
		if got := FoldNames(x.names); !slices.Equal(got, x.want) {
			t.Errorf("%v, want %v", got, x.want)
		}
	}
}

func TestFold(t *testing.T) {
	type item struct {
		port  uint16
		group string
	}
	var all []item
	for p := uint16(10); p < 20; p++ { // two at each port
		all = append(all, item{p, "a"}, item{p, "b"})
	}
	all[9].group = "c" // 14
	groups := Fold(all, func(i item) (uint16, string) { return i.port, "tcp" },
		func(g []item, next item) bool { return g[0].group == next.group })
	got := ""
	for _, g := range groups {
		got += fmt.Sprintf("%s %s, ", Range(g[0].port, g[len(g)-1].port), g[0].group)
	}
	if want := "10-19 a, 10-13 b, 14 c, 15-19 b, "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestExposedNames(t *testing.T) {
	var list []Exposed
	add := func(port uint16, server string) {
		list = append(list, Exposed{Port: port, Proto: "tcp", Server: server})
	}
	for p := range uint16(4) {
		add(3000+p, fmt.Sprintf("web:%d", 80+p))
	}
	for p := range uint16(4) {
		add(3004+p, "web:80")
		add(4000+p, "sshd")
	}
	add(4004, "[fd00::2]:80")
	add(5000, unknownProgram)
	add(5001, unknownProgram)
	add(5002, unknownProgram)
	got := exposedNames(list)
	if want := []string{"3000-3003/tcp (web:80-83)", "3004-3007/tcp (web:80)",
		"4000-4003/tcp (sshd)", "4004/tcp ([fd00::2]:80)", "5000-5002/tcp"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
