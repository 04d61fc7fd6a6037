package sample

import "testing"

func TestCommandLine(t *testing.T) {
	args := []string{"run", "--client", "it's a^b", "", "größe", "http://a:1/x,y", "*"}
	want := `toll run --client 'it'\''s a^b' '' größe http://a:1/x,y '*'`
	if got := CommandLine(args); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := CommandLine(nil); got != "toll" {
		t.Errorf("without arguments: %q", got)
	}
}
