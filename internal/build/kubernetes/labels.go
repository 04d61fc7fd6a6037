package kubernetes

// All objects that a run makes carry RunLabel, with the run's ID, and ownerAnnotation, with
// the mark of the toll that made them (see package owner): a mark does not fit into a label.
const (
	RunLabel        = "io.bridgetoll/run"
	roleLabel       = "io.bridgetoll/role"
	ownerAnnotation = "io.bridgetoll/owner"
)

// namePrefix is what the names of all objects begin with: toll-RUN-ROLE-N.
const namePrefix = "toll-"

// containerName is the one container's of each pod.
const containerName = "toll"

// Rule is what a run must be allowed to do, as RBAC has it.
type Rule struct {
	Group     string // of the API; "" is core
	Resources []string
	Verbs     []string
	// Cluster says that the objects are in no namespace.
	Cluster bool
}

// Rules are the least that a run needs, and toll clean. An exec stream is a GET if it begins as
// a WebSocket and a POST by SPDY.
func Rules() []Rule {
	return []Rule{
		{Resources: []string{"nodes"}, Verbs: []string{"get", "list"}, Cluster: true},
		{Resources: []string{"pods"}, Verbs: []string{"create", "get", "list", "delete"}},
		{Resources: []string{"pods/exec"}, Verbs: []string{"get", "create"}},
		{Resources: []string{"services"}, Verbs: []string{"create", "get", "list", "delete"}},
	}
}
