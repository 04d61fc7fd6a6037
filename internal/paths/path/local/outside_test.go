package local

import (
	"os"
	"strings"
	"testing"
)

func TestServeIO(t *testing.T) {
	if _, err := processIO(os.Getpid()); err != nil {
		t.Skip(err) // CONFIG_TASK_IO_ACCOUNTING
	}
	if _, err := askOutside(os.Getpid()); err == nil {
		t.Error("nobody serves, and there is an answer")
	}
	variable, stop, err := ServeIO()
	if err != nil {
		t.Fatal(err)
	}
	name, value, _ := strings.Cut(variable, "=")
	t.Setenv(name, value)
	before, err := processIO(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	asked, err := askOutside(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	after, err := processIO(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if asked.ForwardBytes < before.ForwardBytes || asked.ForwardBytes > after.ForwardBytes ||
		asked.BackwardBytes < before.BackwardBytes || asked.BackwardBytes > after.BackwardBytes {
		t.Errorf("%+v is not between %+v and %+v", asked, before, after)
	}
	if _, err := askOutside(1 << 30); err == nil {
		t.Error("no such process, and an answer")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := askOutside(os.Getpid()); err == nil {
		t.Error("it was stopped, and there is an answer")
	}
}
