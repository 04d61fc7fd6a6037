package docker

import "testing"

// The kernel module may have been unloaded since.
func TestRestoreSysctlThatIsGone(t *testing.T) {
	if was, err := restoreSysctl(bridgeNF + "-of-no-kernel"); was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
}
