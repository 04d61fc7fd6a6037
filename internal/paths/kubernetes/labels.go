package kubernetes

// All objects that a run makes have RunLabel, with the run's ID, and ownerAnnotation, with the mark
// of their toll (see package owner): a mark does not fit into a label.
const (
	RunLabel        = "io.bridgetoll/run"
	roleLabel       = "io.bridgetoll/role"
	ownerAnnotation = "io.bridgetoll/owner"
)

// namePrefix begins the names of all objects: toll-RUN-ROLE-N.
const namePrefix = "toll-"

// containerName is the name of each pod's only container.
const containerName = "toll"

// Rule is a permission that a run needs, in RBAC's terms.
type Rule struct {
	Group     string // of the API; "" is core
	Resources []string
	Verbs     []string
	// Cluster means that the objects are in no namespace.
	Cluster bool
}

// Rules returns the least that a run and toll clean need. An exec stream is a GET if it begins as a
// WebSocket and a POST by SPDY.
func Rules() []Rule {
	return []Rule{
		{Resources: []string{"nodes"}, Verbs: []string{"get", "list"}, Cluster: true},
		{Resources: []string{"pods"}, Verbs: []string{"create", "get", "list", "delete"}},
		{Resources: []string{"pods/exec"}, Verbs: []string{"get", "create"}},
		{Resources: []string{"services"}, Verbs: []string{"create", "get", "list", "delete"}},
	}
}
