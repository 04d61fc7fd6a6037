package kubernetes

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
)

type role string

const (
	// onNode pods use their nodes' network (hostNetwork), and read the nodes' counters.
	onNode role = "node"
	// serving pods run a server, calling pods a client. Each pod has its own address.
	serving role = "server"
	calling role = "client"
	// published pods run a server with a host port.
	published role = "hostport"
	// observing pods see every process and network namespace of their nodes.
	observing role = "observer"
)

const serverPort = recipe.ServerPort

const (
	// deadline is the time after which the kubelet ends a pod. Runs are shorter.
	deadline = 24 * time.Hour
	// patience is the time after which a pod without an agent exits.
	patience = time.Minute
	nobody   = 65532
)

type hostPort int32

// pod returns a pod for the node. It selects the node by affinity, not by nodeName, so that the
// scheduler refuses a node that takes no pods.
func (r *run) pod(name string, kind role, n Node, port hostPort) *corev1.Pod {
	no, seconds, grace := false, int64(deadline/time.Second), int64(1)
	p := &corev1.Pod{
		ObjectMeta: r.meta(name, kind),
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         &seconds,
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			HostNetwork:                   kind == onNode || kind == observing,
			HostPID:                       kind == observing,
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{
						{MatchFields: []corev1.NodeSelectorRequirement{
							{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn,
								Values: []string{n.Name}}}}}}}},
			Containers: []corev1.Container{{
				Name: containerName, Image: r.image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{dockerapi.InImage, agent.Arg, "--sit",
					strconv.Itoa(int(patience/time.Second)) + "s"},
				SecurityContext: security(kind),
				Resources:       corev1.ResourceRequirements{Requests: small, Limits: large},
			}},
		},
	}
	if kind == observing { // where a server runs, its node's taints keep others away
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	for key, value := range uninjected {
		p.Labels[key], p.Annotations[key] = value, value
	}
	if port != 0 {
		for _, proto := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
			p.Spec.Containers[0].Ports = append(
				p.Spec.Containers[0].Ports, corev1.ContainerPort{
					ContainerPort: serverPort, HostPort: int32(port), Protocol: proto})
		}
	}
	return p
}

// uninjected has the labels and annotations with which pods stay out of Istio (sidecars and ambient
// mode), Linkerd, Kuma and Consul, whose proxies would change the path.
var uninjected = map[string]string{"sidecar.istio.io/inject": "false",
	"istio.io/dataplane-mode": "none", "linkerd.io/inject": "disabled",
	"kuma.io/sidecar-injection": "disabled", "consul.hashicorp.com/connect-inject": "false"}

// The pods have no CPU limit, because it would throttle the load.
var (
	small = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"),
		corev1.ResourceMemory: resource.MustParse("32Mi")}
	large = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
)

// security returns a pod's security context. onNode pods may read the nodes' connection tracking
// tables and rules (NET_ADMIN). observing pods are privileged: they enter other pods' network
// namespaces and load BPF programs, which the usual profiles of AppArmor and SELinux forbid, too.
// The others have no capabilities.
func security(kind role) *corev1.SecurityContext {
	no, yes, user := false, true, int64(nobody)
	if kind == observing {
		return &corev1.SecurityContext{Privileged: &yes, ReadOnlyRootFilesystem: &yes}
	}
	s := &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if kind == onNode {
		s.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
		return s
	}
	s.RunAsNonRoot, s.RunAsUser = &yes, &user
	return s
}

func (r *run) meta(name string, kind role) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{
		runLabel: r.id, roleLabel: string(kind)},
		Annotations: map[string]string{ownerAnnotation: r.owner}}
}

type front string

const (
	clusterIP     front = "clusterip"
	nodePort      front = "nodeport"
	nodePortLocal front = "nodeport-local"
	headless      front = "headless"
)

func (r *run) serviceOf(name string, kind front) *corev1.Service {
	s := &corev1.Service{ObjectMeta: r.meta(name, role(kind)), Spec: corev1.ServiceSpec{
		// A cluster with both families may give services an IPv6 address otherwise.
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		Type:       corev1.ServiceTypeClusterIP, Selector: map[string]string{
			runLabel: r.id, roleLabel: string(serving)}}}
	switch kind {
	case clusterIP:
	case headless:
		s.Spec.ClusterIP = corev1.ClusterIPNone
		s.Spec.PublishNotReadyAddresses = true
	case nodePort:
		s.Spec.Type = corev1.ServiceTypeNodePort
	case nodePortLocal:
		s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeNodePort,
			corev1.ServiceExternalTrafficPolicyLocal
	}
	for _, proto := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
			Name: "toll-" + map[corev1.Protocol]string{
				corev1.ProtocolTCP: "tcp", corev1.ProtocolUDP: "udp"}[proto],
			Protocol: proto, Port: serverPort, TargetPort: intstr.FromInt32(serverPort)})
	}
	return s
}

func (r *run) name(what string) string {
	r.made++
	return fmt.Sprintf("%s%s-%s-%s", namePrefix, r.id, what, strconv.Itoa(r.made))
}
